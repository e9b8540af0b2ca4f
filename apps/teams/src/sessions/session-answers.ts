import { notFound, type OpenedSession, type User } from '@atoll/contracts';
import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { userQuery } from '../users/user-query.js';
import { accessSeconds } from './session-policy.js';
import type { SessionRow } from './session.service.js';
import { SigningKeys } from './signing-keys.service.js';

/** What a session gives its user: an access token, the next refresh token, and who they are. */
@Injectable()
export class SessionAnswers {
  constructor(
    private readonly statements: Statements,
    private readonly signingKeys: SigningKeys,
  ) {}

  async opened({ id, user_id, idle_seconds, life_seconds }: SessionRow, refresh_token: string): Promise<OpenedSession> {
    const expires_in = Math.max(0, Math.min(accessSeconds, life_seconds));
    const [access_token, [found]] = await Promise.all([
      this.signingKeys.sign({ userId: user_id, sessionId: id, lifeSeconds: expires_in }),
      this.statements.query<{ user: User }>('users.profile', userQuery, [user_id, null]),
    ]);
    if (!found) throw notFound('user');
    return { session_id: id, access_token, expires_in, user: found.user, refresh_token, refresh_expires_in: Math.max(0, idle_seconds) };
  }
}
