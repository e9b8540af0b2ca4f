import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ExactNumber } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { digestOf } from './call-context.js';

/** JSON is the one content type, on every method, GET included. No body is no body, whatever `Content-Type` says. */
export function acceptJsonBodies(instance: FastifyInstance): void {
  instance.addHttpMethod('GET', { hasBody: true, overrideExisting: true });
  instance.removeAllContentTypeParsers();
  instance.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      done(null, parseJson(request, body as Buffer));
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
  if (headers['transfer-encoding'] === undefined && (length === undefined || length === '0'))
    delete headers['content-type'];
}

const utf8 = new TextDecoder('utf-8', { fatal: true });
const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i;

function parseJson(request: FastifyRequest, bytes: Buffer): unknown {
  const { headers } = request;
  if (headers['idempotency-key'] !== undefined) request.bodyDigest = digestOf(bytes);
  if (bytes.length === 0) return undefined;
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') throw unsupported();
  const [, named = 'utf-8'] = charset.exec(headers['content-type'] ?? '') ?? [];
  if (!/^utf-?8$/i.test(named)) throw unsupported();
  const body = parsed(decoded(bytes), request.routeOptions.config.exactNumbers);
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body;
  throw new AppError('invalid_input', 'The body must be a JSON object.');
}

function decoded(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new AppError('invalid_input', 'The body is not valid UTF-8.');
  }
}

function parsed(text: string, exactNumbers: string | undefined): unknown {
  try {
    return exactNumbers === undefined || !longNumber.test(text)
      ? JSON.parse(text)
      : JSON.parse(text, keepNumbersOf(exactNumbers));
  } catch {
    throw new AppError('invalid_input', 'The body is not valid JSON.');
  }
}

/**
 * A double keeps 15 digits, and an exponent may make 0 of it; where no number of a body has more in a row or an
 * exponent, which is quickly seen, its numbers may be read as such. Digits behind a quote are a text: hexadecimal ids
 * often have so many.
 */
const longNumber = /[\s:,[]-?(?:[\d.]{16}|[\d.]{1,15}[eE])/;

/** `context.source`, the text of a primitive value, is of ECMAScript 2026 and not yet in TypeScript's library. */
function keepNumbersOf(
  field: string,
): (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown {
  return (key, value, context) =>
    key === field && typeof value === 'number' ? new ExactNumber(context?.source ?? String(value)) : value;
}

function unsupported(): AppError {
  return new AppError(
    'unsupported_media_type',
    'Send the body as application/json in UTF-8, without content encoding.',
  );
}
