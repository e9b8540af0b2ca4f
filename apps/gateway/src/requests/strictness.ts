import type { FastifyRequest } from 'fastify';
import { AppError, type FieldError } from '@atoll/errors';

/** RFC 9112, 3.2: a request of HTTP/1.1 names its host, and no request names two. */
export function requireHost({ raw }: FastifyRequest): void {
  const hosts = raw.rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hosts > 1) throw new AppError('invalid_input', 'The request has more than one Host header.');
  if (hosts === 0 && raw.httpVersion === '1.1') throw new AppError('invalid_input', 'The request has no Host header.');
}

/** Faults of a query string before its parameters are read: bad encoding, a repeated name. */
export function queryFaults(request: FastifyRequest): FieldError[] {
  const url = request.raw.url ?? '';
  const start = url.indexOf('?');
  if (start === -1) return [];
  if (!isDecodable(url.slice(start + 1))) {
    return [{ path: '', code: 'percentEncoding', message: 'the query must be percent-encoded UTF-8' }];
  }
  return Object.entries(request.query as object)
    .filter(([, value]) => Array.isArray(value))
    .map(([name]) => ({ path: name, code: 'repeated', message: `${name} must be given once` }));
}

function isDecodable(text: string): boolean {
  if (!text.includes('%')) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
