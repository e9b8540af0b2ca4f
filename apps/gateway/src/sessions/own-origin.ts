import { AppError } from '@atoll/errors';
import type { FastifyRequest } from 'fastify';

const loopback = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?=:|$)/;

/**
 * Throws `forbidden` for what a page of another origin sends (Fetch Metadata; RFC 6454): log-in, refresh and log-out
 * belong to the platform's own pages. What is sent by no page says neither where it comes from nor has it the cookie of
 * somebody else. The names of this machine are one: a platform that people reach by `localhost` is also opened by its
 * address.
 */
export function requireOwnOrigin({ headers }: FastifyRequest, publicUrl: string): void {
  const { origin, 'sec-fetch-site': site } = headers;
  const isOwnSite = site === undefined || site === 'same-origin';
  if (isOwnSite && (origin === undefined || isOwnOrigin(origin, publicUrl))) return;
  throw new AppError('forbidden', `Only pages of ${publicUrl} may call this, not those of another origin.`);
}

/** Whether an `Origin` header names the platform. */
export function isOwnOrigin(origin: string, publicUrl: string): boolean {
  return nameOf(origin) === nameOf(publicUrl);
}

function nameOf(origin: string): string {
  return origin.replace(loopback, 'http://localhost');
}
