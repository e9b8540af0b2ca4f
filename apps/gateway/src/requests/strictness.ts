import type { FastifyRequest } from 'fastify';
import type { FieldError } from '@atoll/errors';

/** Names that turn into something else when an object is copied; the copy that is validated would not have them any more. */
const reserved: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** What is wrong with a query string before anybody asks what is in it: bad encoding, a name twice, a reserved name. */
export function queryFaults(request: FastifyRequest): FieldError[] {
  const url = request.raw.url ?? '';
  const start = url.indexOf('?');
  if (start === -1) return [];
  if (!isDecodable(url.slice(start + 1))) {
    return [{ path: '', code: 'percentEncoding', message: 'the query must be percent-encoded UTF-8' }];
  }
  const repeated = Object.entries(request.query as object)
    .filter(([, value]) => Array.isArray(value))
    .map(([name]) => ({ path: name, code: 'repeated', message: `${name} must be given once` }));
  return [...repeated, ...reservedNames(request.query)];
}

/** Fields of reserved names, at whatever depth, as the unknown fields they are. */
export function reservedNames(value: unknown, parent = ''): FieldError[] {
  if (typeof value !== 'object' || value === null) return [];
  const faults: FieldError[] = [];
  for (const name of Object.keys(value)) {
    const path = parent ? `${parent}.${name}` : name;
    if (reserved.has(name)) faults.push({ path, code: 'whitelistValidation', message: `property ${name} should not exist` });
    else faults.push(...reservedNames((value as Record<string, unknown>)[name], path));
  }
  return faults;
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
