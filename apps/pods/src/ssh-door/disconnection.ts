import type { Socket } from 'node:net';
import type { Connection } from 'ssh2';

/** Reason codes of SSH_MSG_DISCONNECT (RFC 4253, 11.1). */
export const disconnection = {
  protocolError: 2,
  byApplication: 11,
  tooManyConnections: 12,
  noMoreMethods: 14,
} as const;
export type DisconnectionCode = (typeof disconnection)[keyof typeof disconnection];

const message = 1;
/** For which what the client still sends is read, so that it reads the sentence in place of a reset. */
const lingerMs = 1_000;
const lingerAtMost = 100;
const identification = 'SSH-2.0-Atoll\r\n';

/**
 * What ssh2 has of its connection and does not show: its own `disconnect` has no description, which is what clients
 * print.
 */
interface Inside {
  readonly _protocol?: {
    readonly _cipher: { encrypt(packet: Buffer): void };
    readonly _packetRW: {
      readonly write: {
        readonly allocStartKEX: number;
        alloc(bytes: number, force: true): Buffer;
        finalize(packet: Buffer, force: true): Buffer;
      };
    };
  };
}

/**
 * Tells the client why it is disconnected, and ends the connection. Throws nothing: a connection that has failed is
 * ended without a word.
 */
export function disconnect(client: Connection, code: DisconnectionCode, sentence: string): void {
  try {
    const protocol = (client as Inside)._protocol;
    if (protocol) {
      const { write } = protocol._packetRW;
      const payload = payloadOf(code, sentence);
      const packet = write.alloc(payload.length, true);
      packet.set(payload, write.allocStartKEX);
      protocol._cipher.encrypt(write.finalize(packet, true));
    }
  } catch {
    // Its ciphers are gone.
  }
  client.end();
}

/** Connections that are being refused. */
const refused = new Set<Socket>();

/** Ends a connection to which no byte has been sent, with a sentence to the client: it needs no keys to read it. */
export function refuse(socket: Socket, code: DisconnectionCode, sentence: string): void {
  if (refused.size >= lingerAtMost) return void socket.destroy();
  refused.add(socket);
  const cut = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => {
    clearTimeout(cut);
    refused.delete(socket);
  });
  socket.end(Buffer.concat([Buffer.from(identification), packetOf(payloadOf(code, sentence))]));
  socket.resume();
}

function payloadOf(code: DisconnectionCode, sentence: string): Buffer {
  const text = Buffer.from(sentence);
  const payload = Buffer.alloc(13 + text.length);
  payload.writeUInt8(message, 0);
  payload.writeUInt32BE(code, 1);
  payload.writeUInt32BE(text.length, 5);
  text.copy(payload, 9);
  return payload;
}

/** The binary packet of RFC 4253, 6, before any keys: a multiple of 8 bytes, 4 of padding at least. */
function packetOf(payload: Buffer): Buffer {
  const padding = 4 + ((8 - ((5 + payload.length + 4) % 8)) % 8);
  const packet = Buffer.alloc(5 + payload.length + padding);
  packet.writeUInt32BE(packet.length - 4, 0);
  packet.writeUInt8(padding, 4);
  payload.copy(packet, 5);
  return packet;
}
