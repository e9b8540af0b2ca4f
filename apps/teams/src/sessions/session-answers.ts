import { notFound } from '@atoll/contracts';
import { type OpenedSession, type User } from '@atoll/contracts/teams';
import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { userQuery } from '../views/user-query.js';
import { confinement, type SessionRow } from './session-query.js';
import { accessSeconds } from './session-policy.js';
import { SigningKeys } from './signing-keys.service.js';

/** Builds the response that opens or refreshes a session: an access token, the next refresh token, and the user. */
@Injectable()
export class SessionAnswers {
  constructor(
    private readonly statements: Statements,
    private readonly signingKeys: SigningKeys,
  ) {}

  async opened({ id, user_id, idle_seconds, life_seconds }: SessionRow, refresh_token: string): Promise<OpenedSession> {
    const expires_in = Math.max(0, Math.min(accessSeconds, life_seconds));
    const [access_token, found] = await Promise.all([
      this.signingKeys.sign({ userId: user_id, sessionId: id, lifeSeconds: expires_in }),
      this.userOf(user_id),
    ]);
    if (!found) throw notFound('user');
    return {
      session_id: id,
      access_token,
      expires_in,
      user: found,
      refresh_token,
      refresh_expires_in: Math.max(0, idle_seconds),
    };
  }

  /** As the profile shows the user to this session. */
  private async userOf(id: string): Promise<User | undefined> {
    const asked = `SELECT ${confinement} AS team_id FROM "user" u WHERE u.id = $1`;
    const [confined] = await this.statements.query<{ team_id: string | null }>(asked, [id]);
    const teams = confined?.team_id == null ? null : [confined.team_id];
    const [row] = await this.statements.query<{ user: User }>(userQuery, [id, teams, true]);
    return row?.user;
  }
}
