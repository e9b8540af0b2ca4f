import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { AppError } from '@atoll/errors';
import { problemHeaders, toProblem } from './problem.js';

/** How long and how much of what a client still sends is read and dropped, so that it gets to read the answer instead of a reset. */
const lingerMs = 2_000;
const lingerBytes = 4 * 1024 * 1024;

interface Refusal {
  status: number;
  error: AppError;
  headers?: Record<string, string>;
}

function refusalOf(code: string | undefined): Refusal {
  if (code === 'HPE_HEADER_OVERFLOW')
    return { status: 431, error: new AppError('payload_too_large', 'The request line and headers are larger than 16 KiB.') };
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return { status: 408, error: new AppError('deadline_exceeded', 'The request did not come in time.') };
  return { status: 400, error: new AppError('invalid_input', 'This is no HTTP request.') };
}

/** Those that have their answer: what they still send is an error once more, chunk by chunk. */
const answered = new WeakSet<Duplex>();

/** Answers what Node could not read as a request: there is no path, no credential and no hook yet, only the socket. */
export function answerSocketError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (answered.has(socket)) return;
  answered.add(socket);
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  refuse(socket, refusalOf(error.code));
}

const tunnelRefusal = {
  status: 405,
  error: new AppError('method_not_allowed', 'This is no proxy: CONNECT is not served.'),
  headers: { allow: 'GET, HEAD, POST, PUT, DELETE' },
};

/** Answers `CONNECT`, for which Node hands over the bare socket, its own error handler taken off. */
export function refuseTunnel(_request: unknown, socket: Duplex): void {
  socket.on('error', () => socket.destroy());
  refuse(socket, tunnelRefusal);
}

function refuse(socket: Duplex, { status, error, headers: more = {} }: Refusal): void {
  const requestId = randomUUID();
  const body = JSON.stringify(toProblem(error, { instance: '/', requestId, status }));
  const headers = {
    ...problemHeaders(error),
    ...more,
    'content-length': String(Buffer.byteLength(body)),
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    connection: 'close',
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join('')}\r\n${body}`);
  linger(socket);
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
