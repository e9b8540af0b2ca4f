import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { OpenedSession } from '@atoll/contracts/teams';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { afterGrace, elsewhere, home, logIn, refresh, somebody, verify } from './session-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const [one, other] = ['7f1b0c52a9e84d6f93c1d20e5b6a48f7', '01890000-0000-7000-8000-00000000000a'] as const;

const codeOf = async (call: Promise<unknown>): Promise<string> => (await errorOf(call)).code;
const opened = async (): Promise<OpenedSession> => logIn(fixture, await somebody(fixture));
const endReasonOf = async ({ session_id }: OpenedSession): Promise<string | null | undefined> => {
  const asked = 'SELECT end_reason FROM session WHERE id = $1';
  return (await fixture.query<{ end_reason: string | null }>(asked, [session_id]))[0]?.end_reason;
};

it('a refresh whose answer was lost is answered again to the same attempt, however long the outage was', async () => {
  const first = await opened();
  const lost = await refresh(fixture, first, home, one);
  await afterGrace(fixture, first);
  for (let time = 0; time < 2; time += 1) {
    const again = await refresh(fixture, first, elsewhere, one);
    expect(again.refresh_token).toBe(lost.refresh_token);
    await verify(fixture, again);
  }
  await refresh(fixture, lost, home, other);
  expect(await endReasonOf(first)).toBeNull();
});

it('an attempt that is answered again makes the session last no longer', async () => {
  const first = await opened();
  await refresh(fixture, first, home, one);
  await afterGrace(fixture, first);
  const leave = (time: string) =>
    fixture.query('UPDATE session SET idle_until = now() + $2::interval WHERE id = $1', [first.session_id, time]);
  await leave('1 minute');
  for (let time = 0; time < 2; time += 1)
    expect((await refresh(fixture, first, home, one)).refresh_expires_in).toBeLessThanOrEqual(60);
  await leave('0');
  expect(await codeOf(refresh(fixture, first, home, one))).toBe('unauthenticated');
  expect(await endReasonOf(first)).toBeNull();
});

it.each([
  ['another attempt', one, other],
  ['an attempt without an id', one, undefined],
  ['an attempt with an id, where the first had none', undefined, one],
])(
  'to %s a refresh is answered again for the grace only: then it ends the session as stolen',
  async (_, made, asked) => {
    const first = await opened();
    const next = await refresh(fixture, first, home, made);
    expect((await refresh(fixture, first, elsewhere, asked)).refresh_token).toBe(next.refresh_token);
    await afterGrace(fixture, first);
    expect(await codeOf(refresh(fixture, first, elsewhere, asked))).toBe('unauthenticated');
    expect(await codeOf(refresh(fixture, next, home, made))).toBe('unauthenticated');
    expect(await endReasonOf(first)).toBe('refresh_token_reused');
  },
);

it.each([
  ['another id', other],
  ['the same id', one],
])('an attempt counts until the next rotation, by %s: then it ends the session as stolen', async (_, later) => {
  const first = await opened();
  await refresh(fixture, await refresh(fixture, first, home, one), home, later);
  expect(await codeOf(refresh(fixture, first, home, one))).toBe('unauthenticated');
  expect(await endReasonOf(first)).toBe('refresh_token_reused');
});

it('an attempt counts for its own token, also while a replica of the release before rotates without a word of it', async () => {
  const first = await opened();
  const second = await refresh(fixture, first, home, one);
  await fixture.query('UPDATE session SET generation = generation + 1 WHERE id = $1', [first.session_id]);
  await afterGrace(fixture, first);
  expect(await codeOf(refresh(fixture, second, home, one))).toBe('unauthenticated');
  expect(await endReasonOf(first)).toBe('refresh_token_reused');
});

it('the row of a session does not hold the id', async () => {
  const session = await opened();
  await refresh(fixture, session, home, one);
  const asked = 'SELECT s.attempt_digest, s::text AS whole FROM session s WHERE id = $1';
  const rows = await fixture.query<{ attempt_digest: Buffer | null; whole: string }>(asked, [session.session_id]);
  expect(rows[0]?.attempt_digest).toHaveLength(32);
  for (const spelling of [one, Buffer.from(one).toString('hex')]) expect(rows[0]?.whole).not.toContain(spelling);
});

it.each(['x'.repeat(15), 'x'.repeat(65), `${'x'.repeat(16)} `, 'é'.repeat(16)])(
  'an id that has not its form is refused, and the session goes on: %j',
  async (attempt) => {
    const session = await opened();
    expect(await codeOf(refresh(fixture, session, home, attempt))).toBe('invalid_input');
    await refresh(fixture, session);
  },
);
