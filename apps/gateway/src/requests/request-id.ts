import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const sane = /^[A-Za-z0-9._-]{1,128}$/;
const traceContext = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The id that the caller gave the request, where it can be logged and sent on as it is; a new one otherwise. */
export function requestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && sane.test(given) ? given : randomUUID();
}

/** W3C Trace Context, passed on as it came where it has its form. */
export function traceparentOf({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  const given = headers['traceparent'];
  return typeof given === 'string' && traceContext.test(given) ? given : undefined;
}
