import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { INestApplication } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { terminalProtocol, terminals } from '@atoll/contracts/pods';
import { AppError } from '@atoll/errors';
import { Rpc, systemContext } from '@atoll/rpc';
import { clientAddress } from '../http/client-address.js';
import { refuseUpgrade, type Noted } from '../errors/socket-errors.js';
import { toAppError } from '../errors/to-app-error.js';
import { GatewaySettings } from '../gateway-options.js';
import { Answered } from '../health/answered.js';
import { RateLimits } from '../rate-limits/rate-limits.js';
import { isOwnOrigin } from '../sessions/own-origin.js';
import { Bridge } from './bridge.js';

const path = /^\/api\/pods\/([a-z0-9-]{1,63})\/terminal$/;
const connectMs = 5_000;
const handshakeKey = /^[+/0-9A-Za-z]{22}==$/;
/** Further headers to forward; the others, including cookies, stay private. */
const passedOn = ['sec-websocket-key', 'sec-websocket-version'] as const;

/**
 * Whether a request is for the WebSocket of a terminal; any other `Upgrade` is ignored, as HTTP allows (RFC 9110, 7.8).
 */
export function isTerminalUpgrade({ method, url = '', headers }: IncomingMessage): boolean {
  return method === 'GET' && path.test(url) && headers.upgrade?.toLowerCase() === 'websocket';
}

/**
 * Hands WebSockets of terminals over to the replica of pods that their tickets name, and passes bytes between the two.
 */
export function serveTerminals(app: INestApplication, instance: FastifyInstance): void {
  const answered = app.get(Answered);
  const noted: Noted = (...refusal) => answered.recordUnread(...refusal);
  const settings = app.get(GatewaySettings);
  const [limits, rpc] = [app.get(RateLimits), app.get(Rpc)];
  const open = new Set<Bridge>();
  let isClosing = false;

  async function handOver(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const { headers, url = '' } = request;
    const [, pod_name = ''] = path.exec(url) ?? [];
    const address = clientAddress(
      socket.remoteAddress,
      headers['x-forwarded-for']?.toString(),
      settings.trustedProxies,
    );
    const giveBack = await limits.upgrade(address);
    requireOwnOrigin(headers.origin, settings.publicUrl);
    requireHandshake(headers);
    const ticket = ticketIn(headers['sec-websocket-protocol']);
    const context = systemContext('gateway', { deadlineMs: settings.deadlineMs });
    const replica = await connectTo(await rpc.call(terminals.locate, { pod_name, ticket }, context));
    if (isClosing || socket.destroyed) return void [socket, replica].forEach((end) => end.destroy());
    replica.write(headFor(request, { pod_name, ticket, address }));
    await requireOpened(replica);
    // The ticket was counted when it was asked for.
    await giveBack();
    if (isClosing || socket.destroyed) return void [socket, replica].forEach((end) => end.destroy());
    replica.write(head);
    const bridge = new Bridge(socket, replica, () => open.delete(bridge));
    open.add(bridge);
  }

  instance.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    socket.setNoDelay(true);
    handOver(request, socket, head).catch((error: unknown) =>
      refuseUpgrade(socket, toAppError(error), request.url ?? '/', noted),
    );
  });
  // Node waits for these connections and ends none of them.
  instance.addHook('preClose', async () => {
    isClosing = true;
    await Promise.all([...open].map((bridge) => bridge.close()));
  });
}

function headFor(
  { headers }: IncomingMessage,
  { pod_name, ticket, address }: { pod_name: string; ticket: string; address: string },
): string {
  const lines = [
    `GET /${pod_name} HTTP/1.1`,
    'host: pods',
    'connection: Upgrade',
    'upgrade: websocket',
    `sec-websocket-protocol: ${terminalProtocol}, ${ticket}`,
    `x-forwarded-for: ${address}`,
    ...passedOn.map((name) => `${name}: ${headers[name]?.toString() ?? ''}`),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** Clients other than browsers send no Origin, and carry no cookie of another user that could be abused. */
function requireOwnOrigin(origin: string | undefined, publicUrl: string): void {
  if (origin === undefined || isOwnOrigin(origin, publicUrl)) return;
  throw new AppError('forbidden', `Only pages of ${publicUrl} may open a terminal, not those of another origin.`);
}

/**
 * What the server of the replica asks for (RFC 6455, 4.2.1), which would refuse it without a word after the ticket is
 * used.
 */
function requireHandshake({
  'sec-websocket-key': key = '',
  'sec-websocket-version': version,
}: IncomingMessage['headers']): void {
  if (handshakeKey.test(key) && version === '13') return;
  throw new AppError(
    'invalid_input',
    'A WebSocket needs Sec-WebSocket-Key, 16 bytes in base64, and Sec-WebSocket-Version: 13.',
  );
}

function ticketIn(protocols: string | undefined): string {
  const offered = (protocols ?? '').split(',').map((name) => name.trim());
  const ticket = offered.find((name) => name !== terminalProtocol);
  if (!offered.includes(terminalProtocol) || ticket === undefined) {
    throw new AppError(
      'unauthenticated',
      `A terminal needs two subprotocols: ${terminalProtocol}, and a ticket from POST to this path.`,
    );
  }
  return ticket;
}

const switched = 'HTTP/1.1 101 ';

/**
 * Throws if the replica does not open the terminal, because its ticket was just used. Data after the head is put back
 * for the next reader.
 */
async function requireOpened(replica: Socket): Promise<void> {
  const deadline = setTimeout(() => replica.destroy(), connectMs);
  try {
    let said = '';
    while (said.length < switched.length) {
      await Promise.race([once(replica, 'readable'), once(replica, 'close')]).catch(() => undefined);
      const chunk = replica.read() as Buffer | null;
      if (chunk === null) throw gone();
      said += chunk.toString('latin1');
    }
    replica.unshift(Buffer.from(said, 'latin1'));
    if (said.startsWith(switched)) return;
  } finally {
    clearTimeout(deadline);
  }
  replica.destroy();
  throw new AppError('unauthenticated', 'The ticket is not valid: it is unknown, has expired or was already used.');
}

function gone(): AppError {
  return new AppError('unavailable', 'The replica that serves this terminal has stopped. Request another ticket.');
}

async function connectTo({ host, port }: { host: string; port: number }): Promise<Socket> {
  const replica = connect({ host, port, noDelay: true });
  const deadline = setTimeout(() => replica.destroy(new Error('timed out')), connectMs);
  try {
    await new Promise<void>((resolve, reject) =>
      replica.once('connect', resolve).once('error', reject).once('close', reject),
    );
    replica.on('error', () => replica.destroy());
    return replica;
  } catch {
    throw gone();
  } finally {
    clearTimeout(deadline);
  }
}
