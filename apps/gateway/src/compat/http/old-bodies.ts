import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError, invalidInput } from '@atoll/errors';
import { digestOf } from '../../requests/call-context.js';

/** Whatever `Content-Type` says: the bytes of a body are kept until it is known whether the call takes one. */
export function keepBodies(instance: FastifyInstance): void {
  instance.addHttpMethod('GET', { hasBody: true, overrideExisting: true });
  instance.removeAllContentTypeParsers();
  instance.addHook('onRequest', (request, _reply, done) => {
    delete request.headers['content-type'];
    done();
  });
  instance.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    if (request.headers['idempotency-key'] !== undefined) request.bodyDigest = digestOf(body);
    done(null, body);
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The JSON value of a call's body; `{}` without one. Throws `invalid_input` for invalid JSON. */
export function jsonBodyOf({ body, headers }: FastifyRequest): unknown {
  if (!Buffer.isBuffer(body) || body.length === 0) return {};
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new AppError('unsupported_media_type', 'Send the body as JSON in UTF-8, without content encoding.');
  }
  try {
    return JSON.parse(utf8.decode(body)) as unknown;
  } catch {
    throw invalidInput([{ path: '', code: 'isJson', message: 'the body must be JSON in UTF-8' }]);
  }
}
