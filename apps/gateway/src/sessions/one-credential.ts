import { AppError } from '@atoll/errors';
import { decodeJwt } from 'jose';
import type { FastifyRequest } from 'fastify';
import { presentedCredential } from '../authentication/presented-credential.js';
import { isSessionToken } from '../authentication/session-tokens.js';
import type { PresentedCookie } from './session-cookie.js';

/**
 * Throws `unauthenticated` where a header presents anything but an access token of the cookie's own session. The token
 * is not verified: it opens nothing here, and may have expired.
 */
export function requireSameSession({ raw }: FastifyRequest, { sessionId }: PresentedCookie): void {
  const credential = presentedCredential(raw.rawHeaders);
  if (credential === null || (isSessionToken(credential) && sidIn(credential) === sessionId)) return;
  throw new AppError(
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
