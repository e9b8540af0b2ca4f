import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { AppError } from '@atoll/errors';
import { roomFor } from './begun-responses.js';
import { errorKinds } from './error-kinds.js';
import { problemHeaders, toProblem, type ProblemOrigin } from './problem.js';

/**
 * How long and how much of what a client still sends is read and dropped, so that it gets to read the answer instead of
 * a reset.
 */
const lingerMs = 2_000;
const lingerBytes = 4 * 1024 * 1024;

interface Refusal {
  status: number;
  error: AppError;
  headers?: Record<string, string>;
}

const methods = 'GET, HEAD, POST, PUT, DELETE';

const noRequest: Refusal = { status: 400, error: new AppError('invalid_input', 'This is not an HTTP request.') };
const byCode: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    error: new AppError(
      'payload_too_large',
      'The request has more than 1000 headers, or its request line and headers are larger than 16 KiB in all.',
    ),
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    error: new AppError('request_timeout', 'The request was not received in time.'),
  },
  HPE_INVALID_METHOD: {
    status: 405,
    error: new AppError('method_not_allowed', `This method is not supported. Use ${methods}.`),
    headers: { allow: methods },
  },
};

interface SocketError extends NodeJS.ErrnoException {
  /** What came, a Buffer. */
  rawPacket?: unknown;
}

/** Of a request that could be one, but for its method. */
const requestLine = /^[A-Z][A-Z-]* \S+ HTTP\/1\.[01]\r?\n/;

function refusalOf({ code = '', rawPacket }: SocketError): Refusal {
  const isText =
    code === 'HPE_INVALID_METHOD' && !(Buffer.isBuffer(rawPacket) && requestLine.test(rawPacket.toString('latin1')));
  return (isText ? undefined : byCode[code]) ?? noRequest;
}

/** Told of each refusal, and of the address at the other end of the socket. */
export type Noted = (status: number, requestId: string, peer: string | undefined) => void;

/** In which form a listener answers what it could not read. */
export type UnreadForm = (
  error: AppError,
  origin: ProblemOrigin & { status: number },
) => { contentType?: string; body: object };

const asProblem: UnreadForm = (error, origin) => ({ body: toProblem(error, origin) });

/** Those that have their answer: what they still send is an error once more, chunk by chunk. */
const answered = new WeakSet<Duplex>();

/** Answers what Node could not read as a request: there is no path, no credential and no hook yet, only the socket. */
export function answerSocketError(error: SocketError, socket: Duplex, noted: Noted, form?: UnreadForm): void {
  if (answered.has(socket)) return;
  answered.add(socket);
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  refuse(socket, refusalOf(error), noted, { form });
}

const tunnelRefusal = {
  status: 405,
  error: new AppError('method_not_allowed', 'This server is not a proxy; CONNECT is not supported.'),
  headers: { allow: methods },
};

/** Answers `CONNECT`, for which Node hands over the bare socket, its own error handler taken off. */
export function refuseTunnel(socket: Duplex, noted: Noted, form?: UnreadForm): void {
  socket.on('error', () => socket.destroy());
  refuse(socket, tunnelRefusal, noted, { form });
}

/** Answers a request to change the protocol, for which Node hands over the bare socket too. */
export function refuseUpgrade(socket: Duplex, error: AppError, instance: string, noted: Noted): void {
  if (socket.writable) refuse(socket, { status: errorKinds[error.code].status, error }, noted, { instance });
}

interface Answer {
  instance?: string;
  form?: UnreadForm | undefined;
}

/**
 * Sends a refusal, unless the client would take it for a part of another response, or for the response to its next
 * request: then the connection only ends.
 */
function refuse(socket: Duplex, refusal: Refusal, noted: Noted, answer: Answer): void {
  const room = roomFor(socket);
  if (room === 'no end') {
    socket.destroy();
    return;
  }
  if (room === 'response') socket.write(responseOf(socket, refusal, noted, answer));
  socket.end();
  linger(socket);
}

function responseOf(
  socket: Duplex,
  refusal: Refusal,
  noted: Noted,
  { instance = '/', form = asProblem }: Answer,
): string {
  const { status, error, headers: more = {} } = refusal;
  const requestId = randomUUID();
  noted(status, requestId, (socket as Partial<Socket>).remoteAddress);
  const { contentType, body: plain } = form(error, { instance, requestId, status });
  const body = JSON.stringify(plain);
  const headers = {
    ...problemHeaders(error),
    ...(contentType && { 'content-type': contentType }),
    ...more,
    'content-length': String(Buffer.byteLength(body)),
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    connection: 'close',
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join('')}\r\n${body}`;
}

function linger(socket: Duplex): void {
  let bytes = 0;
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > lingerBytes) socket.destroy();
  });
  socket.once('close', () => clearTimeout(timer));
  socket.resume();
}
