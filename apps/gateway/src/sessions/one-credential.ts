import { AppError } from '@atoll/errors';
import { decodeJwt } from 'jose';
import type { FastifyRequest } from 'fastify';
import { presentedCredential } from '../authentication/presented-credential.js';
import { isSessionToken } from '../authentication/session-tokens.js';
import type { PresentedCookie } from './session-cookie.js';

/**
 * The access token of another session than the cookie's, where a header presents one. Throws `unauthenticated` for any
 * other credential than an access token. The token is not verified.
 */
export function tokenOfOtherSession({ raw }: FastifyRequest, { sessionId }: PresentedCookie): string | undefined {
  const credential = presentedCredential(raw.rawHeaders);
  if (credential === null) return undefined;
  if (!isSessionToken(credential)) throw twoCredentials();
  return sidIn(credential) === sessionId ? undefined : credential;
}

/**
 * Throws `unauthenticated` where a header presents anything but an access token of the cookie's own session. The token
 * is not verified: it opens nothing here, and may have expired.
 */
export function requireSameSession(request: FastifyRequest, cookie: PresentedCookie): void {
  if (tokenOfOtherSession(request, cookie) !== undefined) throw twoCredentials();
}

export function twoCredentials(): AppError {
  return new AppError(
    'unauthenticated',
    'Two different credentials were sent: a session cookie and one in a header. Send only one.',
  );
}

function sidIn(token: string): unknown {
  try {
    return decodeJwt(token)['sid'];
  } catch {
    return undefined;
  }
}
