import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createSecureContext, TLSSocket, type SecureContext } from 'node:tls';

/**
 * What answers behind a door. `respond` gives the name of the pod that runs now, and notes the request in its log;
 * null: none runs.
 */
export interface Behind {
  respond(request: string): Promise<string | null>;
  /**
   * The name of the pod, where it is one that says so to each connection and packet, and then sends back what it
   * receives; null otherwise.
   */
  echoes(): Promise<string | null>;
}

export interface Listener {
  readonly port: number;
  /** A certificate for connections from now on; those that are open continue. */
  renew(tls: SecureContext | null): void;
  close(): Promise<void>;
}

const idleMs = 300_000;
/** Of one door. More are closed at once. */
const connectionsAtOnce = 200;
/** Of one door, those that wait for their answers. */
const datagramsAtOnce = 16;
/** Characters after the last line that has ended. */
const longestLine = 8_192;
const isHttp = /^([A-Z]{3,10}) (\S{1,2000}) HTTP\/1\.[01]\r?$/;

/**
 * Listens on a TCP port for a simulated pod: HTTP gets a page, any other line an echo, each with the name of the pod.
 * Rejects where the port is taken.
 */
export async function listenTcp(
  host: string,
  port: number,
  tls: SecureContext | null,
  behind: Behind,
): Promise<Listener> {
  let current = tls;
  const open = new Set<Socket>();
  // A client may end its half, and still reads.
  const server: Server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.setTimeout(idleMs, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    const secure =
      current && new TLSSocket(socket, { isServer: true, secureContext: current }).on('error', () => socket.destroy());
    welcome(secure ?? socket, behind).catch(() => socket.destroy());
  });
  server.maxConnections = connectionsAtOnce;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    renew: (next) => {
      current = next;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

/**
 * As `listenTcp`: each datagram is answered by one. Those that come while very many wait for their answers are lost.
 */
export async function listenUdp(host: string, port: number, behind: Behind): Promise<Listener> {
  const socket: UdpSocket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ address: host, port, exclusive: true }, () => {
      socket.off('error', reject);
      resolve();
    });
  });
  const ended = new AbortController();
  socket.on('error', () => undefined);
  const hear = datagramsTo(behind, socket, ended.signal);
  socket.on('message', (message, from) => void hear(message, from));
  const close = (): Promise<void> => {
    ended.abort();
    return new Promise((resolve) => socket.close(() => resolve()));
  };
  return { port: socket.address().port, renew: () => undefined, close };
}

/** Answers datagrams until the signal is aborted, but for one from port 0, which asks for no answer (RFC 768). */
export function datagramsTo(
  behind: Behind,
  socket: Pick<UdpSocket, 'send'>,
  ended: AbortSignal,
): (message: Buffer, from: { port: number; address: string }) => Promise<void> {
  let underWay = 0;
  return async (message, { port, address }) => {
    if (underWay >= datagramsAtOnce) return;
    underWay += 1;
    const text = message.toString('utf8').slice(0, 1_000);
    const name = await behind.respond(`udp ${JSON.stringify(text.trim())}`).catch(() => null);
    underWay -= 1;
    if (name !== null && port !== 0 && !ended.aborted) socket.send(`${name}: ${text}`, port, address, () => undefined);
  };
}

/** The TLS context of a certificate; null for none. Throws for an invalid certificate or key. */
export function contextFor(tls: { certificate: string; key: string } | null): SecureContext | null {
  return tls && createSecureContext({ cert: tls.certificate, key: tls.key });
}

/** Data that arrives meanwhile waits in the socket. Throws if the connection breaks. */
async function welcome(socket: Socket, behind: Behind): Promise<void> {
  const name = await behind.echoes();
  if (socket.destroyed) return;
  if (name === null) return serve(socket, behind);
  socket.write(`${name}\n`);
  socket.pipe(socket);
}

/**
 * Each line is answered when the one before is: no more is read meanwhile, and nothing is answered once the connection
 * is gone.
 */
async function serve(socket: Socket, behind: Behind): Promise<void> {
  let text = '';
  socket.setEncoding('utf8');
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<string>) {
    text += chunk;
    for (let end = text.indexOf('\n'); end >= 0 && !socket.destroyed; end = text.indexOf('\n')) {
      const line = text.slice(0, end);
      const http = isHttp.exec(line);
      if (http) return answerHttp(socket, behind, `${http[1]} ${http[2]}`);
      text = text.slice(end + 1);
      await answerLine(socket, behind, line);
    }
    if (text.length > longestLine) socket.destroy();
  }
  socket.end();
}

async function answerHttp(socket: Socket, behind: Behind, request: string): Promise<void> {
  const name = await behind.respond(`"${request} HTTP/1.1" 200`);
  if (name === null) return void socket.destroy();
  const body = `${name}\n`;
  const head = [
    'HTTP/1.1 200 OK',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  // What else the client sends is read, so that it reads the answer in place of a reset.
  socket.resume().end(`${head.join('\r\n')}\r\n\r\n${request.startsWith('HEAD ') ? '' : body}`);
}

async function answerLine(socket: Socket, behind: Behind, line: string): Promise<void> {
  const name = await behind.respond(`tcp ${JSON.stringify(line.trim().slice(0, 200))}`);
  if (name === null) socket.destroy();
  if (!socket.destroyed && !socket.write(`${name}: ${line}\n`)) await roomIn(socket);
}

/** Resolves when the reader has taken what was written, or is gone. */
function roomIn(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const leave = (): void => {
      socket.off('drain', leave).off('close', leave);
      resolve();
    };
    socket.on('drain', leave).on('close', leave);
  });
}
