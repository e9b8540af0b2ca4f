import { randomUUID } from 'node:crypto';
import { type UserCaller } from '@atoll/contracts';
import {
  links,
  members,
  sessions,
  type OpenedSession,
  type SessionCredential,
  type SessionOrigin,
} from '@atoll/contracts/teams';
import { systemContext } from '@atoll/rpc';
import { timeoutFactor } from '@atoll/testing';
import { callerTeamsOf, type TeamsFixture } from '../teams-fixture.js';

/** Good for as long as any spec file takes. */
export const gateway = systemContext('gateway', { deadlineMs: 3_600_000 });
export const password = 'correct horse battery staple';
export const home: SessionOrigin = { address: '203.0.113.9', network: '203.0.113.9', device: 'a browser' };
export const elsewhere: SessionOrigin = { address: '198.51.100.7', network: '198.51.100.7', device: 'another browser' };

export interface Person {
  userId: string;
  email: string;
}

/** A user who has set the password by a one-time link. */
export async function somebody(fixture: TeamsFixture): Promise<Person> {
  const { userIds, emails } = await fixture.createTeam('team_owner');
  const [userId = '', email = ''] = [userIds[0], emails[0]];
  const { url } = await fixture.call(fixture.admin, links.create, { email });
  await fixture.ask(links.use, { token: tokenIn(url), password }, gateway);
  return { userId, email };
}

/** An account that somebody else has made for this address, by an invitation whose link was shown to them. Its user. */
export async function squat(fixture: TeamsFixture, email: string, secret: string): Promise<string> {
  const { team, keys } = await fixture.createTeam('team_owner');
  const person = { email, name: 'Ada', role: 'member' as const };
  const { user_id, invitation } = await fixture.call(keys[0] ?? '', members.add, { team_id: team.id, ...person });
  await fixture.ask(links.use, { token: tokenIn(invitation?.url ?? ''), password: secret }, gateway);
  return user_id;
}

/** What stands behind `#` in a link. */
export function tokenIn(url: string): string {
  return url.slice(url.indexOf('#') + 1);
}

export function logIn(
  fixture: TeamsFixture,
  { email }: Pick<Person, 'email'>,
  origin = home,
  secret = password,
): Promise<OpenedSession> {
  return fixture.ask(sessions.logIn, { email, password: secret, ...origin }, gateway);
}

export function refresh(
  fixture: TeamsFixture,
  { refresh_token }: Pick<OpenedSession, 'refresh_token'>,
  origin = home,
  attempt?: string,
): Promise<OpenedSession> {
  return fixture.ask(sessions.refresh, { refresh_token, ...(attempt && { attempt }), ...origin }, gateway);
}

/** Lets the grace of the last refresh pass. */
export async function afterGrace(
  fixture: TeamsFixture,
  { session_id }: Pick<OpenedSession, 'session_id'>,
): Promise<void> {
  await fixture.query(`UPDATE session SET rotated_at = rotated_at - interval '11 seconds' WHERE id = $1`, [session_id]);
}

export function verify(
  fixture: TeamsFixture,
  { session_id: id }: Pick<OpenedSession, 'session_id'>,
): Promise<SessionCredential> {
  return fixture.ask(sessions.verify, { id }, gateway);
}

/** The context of a call that the session makes. */
export async function contextOf(fixture: TeamsFixture, session: Pick<OpenedSession, 'session_id'>) {
  const {
    session_id: id,
    user_id: userId,
    platform_admin: platformAdmin,
    timezone,
    teams,
    scope,
  } = await verify(fixture, session);
  const caller: UserCaller = {
    kind: 'user',
    userId,
    credential: { kind: 'session', id },
    scope,
    platformAdmin,
    timezone,
    teams: callerTeamsOf(teams),
  };
  return { requestId: randomUUID(), deadlineAtMs: Date.now() + 30_000 * timeoutFactor, caller };
}
