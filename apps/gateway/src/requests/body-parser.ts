import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '@atoll/errors';
import { digestOf } from './call-context.js';

/** JSON is the one content type, on every method, GET included. No body is no body, whatever `Content-Type` says. */
export function acceptJsonBodies(instance: FastifyInstance): void {
  instance.addHttpMethod('GET', { hasBody: true, overrideExisting: true });
  instance.removeAllContentTypeParsers();
  instance.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) => {
    try {
      done(null, parseJson(request, text as string));
    } catch (error) {
      done(error as Error);
    }
  });
  instance.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    if (body.length === 0) done(null, undefined);
    else done(unsupported());
  });
}

/** Before Fastify looks at the content type: without a body it says nothing, not even nonsense. */
export function ignoreTypeOfNothing({ headers }: FastifyRequest): void {
  const length = headers['content-length'];
  if (headers['transfer-encoding'] === undefined && (length === undefined || length === '0')) delete headers['content-type'];
}

function parseJson(request: FastifyRequest, text: string): unknown {
  if (request.headers['idempotency-key'] !== undefined) request.bodyDigest = digestOf(text);
  if (text === '') return undefined;
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') throw unsupported();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new AppError('invalid_input', 'The body is not valid JSON.');
  }
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body;
  throw new AppError('invalid_input', 'The body must be a JSON object.');
}

function unsupported(): AppError {
  return new AppError('unsupported_media_type', 'A body is taken as application/json only, not encoded.');
}
