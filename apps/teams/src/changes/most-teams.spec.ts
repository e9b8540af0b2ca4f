import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { invitations, links, members, sessions, teams, users } from '@atoll/contracts/teams';
import { isAppError } from '@atoll/errors';
import { allStatementsDuring, mostRowsRead, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { contextOf, gateway, logIn, password, somebody, tokenIn, type Person } from '../sessions/session-fixture.js';
import { SsoMemberships } from '../sso/sso-memberships.js';
import type { SsoProviderSettings } from '../sso/sso-file.js';
import { errorOf, TeamsFixture, type MadeTeam } from '../teams-fixture.js';
import { mostTeams } from './most-teams.js';

const full = { code: 'conflict', message: 'A user is a member of at most 200 teams. Leave one of them first.' };

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
  fixture.asManyReplicas();
});
afterAll(() => fixture.stop());

/** Makes the user a member of so many more teams. */
async function addTeams(userId: string, count: number, status: 'active' | 'invited' = 'active'): Promise<void> {
  await fixture.query(
    `WITH made AS (
       INSERT INTO team (id, name, description, policy_id)
       SELECT gen_random_uuid(), 'One of many', '', p.id FROM image_policy p, generate_series(1, $2) WHERE p.is_default RETURNING id)
     INSERT INTO membership (id, team_id, user_id, role, status) SELECT gen_random_uuid(), id, $1, 'member', $3 FROM made`,
    [userId, count, status],
  );
}

const activeTeams = async (userId: string): Promise<number> =>
  (await fixture.query(`SELECT FROM membership WHERE user_id = $1 AND status = 'active'`, [userId])).length;

/** A user with so many teams, and how they call. */
async function memberOf(count: number): Promise<Person & { context: Awaited<ReturnType<typeof contextOf>> }> {
  const person = await somebody(fixture);
  await addTeams(person.userId, count);
  return { ...person, context: await contextOf(fixture, await logIn(fixture, person)) };
}

async function invite({ email }: Person): Promise<{ made: MadeTeam; url: string }> {
  const made = await fixture.createTeam('team_owner');
  const asked = { team_id: made.team.id, email, name: 'Ada', role: 'member' } as const;
  const { invitation } = await fixture.call(made.keys[0] ?? '', members.add, asked);
  return { made, url: invitation?.url ?? '' };
}

const byGroups = (granted: string[]) =>
  ({
    id: 'corp',
    mapping: { claim: 'groups', grants: granted.map((team_id) => ({ value: team_id, team_id, role: 'member' })) },
  }) as unknown as SsoProviderSettings;

describe('a user who is in as many teams as one may be', () => {
  it('creates none and accepts none, until one of them is left; a link that was refused stays good', async () => {
    const person = await memberOf(mostTeams);
    const { context, userId } = person;
    const [first, second] = [await invite(person), await invite(person)];
    const use = () => fixture.ask(links.use, { token: tokenIn(second.url), password }, gateway);
    const accept = () => fixture.ask(invitations.accept, { team_id: first.made.team.id }, context);
    const create = () => fixture.ask(teams.create, { name: 'One too many' }, context);
    for (const call of [use, accept, create]) expect(await errorOf(call())).toMatchObject(full);
    const left = await fixture.query<{ team_id: string }>(
      `SELECT team_id FROM membership WHERE user_id = $1 AND status = 'active'`,
      [userId],
    );
    for (const [at, call] of [use, accept, create].entries()) {
      await fixture.ask(members.remove, { team_id: left[at]?.team_id ?? '', user_id: userId }, context);
      await call();
      expect(await activeTeams(userId)).toBe(mostTeams);
    }
    expect(await errorOf(create())).toMatchObject(full);
  });

  it('has not more by calls at once', async () => {
    const person = await memberOf(mostTeams - 1);
    const { context, userId } = person;
    const [first, second] = [await invite(person), await invite(person)];
    // What joins waits here, so that each has looked whether there is room before the first has joined.
    const runner = fixture.get(DataSource).createQueryRunner();
    await runner.startTransaction();
    await runner.query('LOCK TABLE membership IN SHARE MODE');
    const calls = Promise.allSettled([
      fixture.ask(teams.create, { name: 'One' }, context),
      fixture.ask(teams.create, { name: 'Two' }, context),
      fixture.ask(invitations.accept, { team_id: first.made.team.id }, context),
      fixture.ask(links.use, { token: tokenIn(second.url), password }, gateway),
    ]);
    await untilLockWaits(fixture, { count: 4 });
    await runner.commitTransaction();
    await runner.release();
    const refusals = (await calls).flatMap((call) => (call.status === 'rejected' ? [call.reason as unknown] : []));
    expect(refusals.map((error) => isAppError(error) && [error.code, error.message])).toEqual(
      Array(3).fill(Object.values(full)),
    );
    expect(await activeTeams(userId)).toBe(mostTeams);
  });

  it('logs in at a provider all the same, which adds the teams for which there is room once it has taken back others', async () => {
    const { userId } = await memberOf(mostTeams - 2);
    const teamIds = await Promise.all(Array.from({ length: 5 }, async () => (await fixture.createTeam()).team.id));
    const apply = (granted: string[]) => fixture.get(SsoMemberships).apply(userId, byGroups(teamIds), granted, gateway);
    const granted = () =>
      fixture.query<{ team_id: string }>(
        `SELECT team_id FROM membership WHERE user_id = $1 AND sso_provider = 'corp' ORDER BY created_at`,
        [userId],
      );
    await apply(teamIds);
    expect((await granted()).map(({ team_id }) => team_id)).toEqual(teamIds.slice(0, 2));
    await apply(teamIds.slice(1));
    expect((await granted()).map(({ team_id }) => team_id)).toEqual(teamIds.slice(1, 3));
    expect(await activeTeams(userId)).toBe(mostTeams);
  });

  it('is not the operator, whose teams do not travel', async () => {
    const [operator] = await fixture.query<{ id: string }>('SELECT id FROM "user" WHERE platform_admin');
    await addTeams(operator?.id ?? '', mostTeams);
    await fixture.call(fixture.admin, teams.create, { name: 'Another' });
  });
});

it('a user who has created 200 teams creates one more in 7.2 minutes, also if none of them is left; the operator any time', async () => {
  const { context, userId } = await memberOf(0);
  const create = (name: string) => fixture.ask(teams.create, { name }, context);
  await fixture.query('DELETE FROM log_in_bucket');
  await create('One');
  await fixture.call(fixture.admin, teams.create, { name: 'Of the operator' });
  // As if there had been 198 before it.
  await fixture.query(
    `UPDATE log_in_bucket SET full_at = full_at + 198 * interval '432 s' WHERE full_at > now() + interval '400 s'`,
  );
  const { id } = await create('Two');
  await fixture.query('DELETE FROM membership WHERE user_id = $1 AND team_id = $2', [userId, id]);
  expect(await errorOf(create('Three'))).toMatchObject({
    code: 'too_many_requests',
    message: 'A user creates at most 200 teams at once, and one in 7.2 minutes after that.',
    details: { retryAfterSeconds: 432 },
  });
  for (const name of ['Another', 'And another']) await fixture.call(fixture.admin, teams.create, { name });
  await fixture.query(`UPDATE log_in_bucket SET full_at = full_at - interval '432 s'`);
  await create('Three');
  expect(await errorOf(create('Four'))).toMatchObject({ code: 'too_many_requests' });
});

it('invitations take no room, and the oldest hundred of them travel with the calls of their user', async () => {
  const person = await memberOf(0);
  await addTeams(person.userId, mostTeams, 'invited');
  const last = await invite(person);
  const opened = await logIn(fixture, person);
  const bySession = await fixture.ask(sessions.verify, { id: opened.session_id }, gateway);
  const byKey = await fixture.verify(await fixture.wholeKeyOf(person.userId));
  for (const { teams: travelling } of [bySession, byKey]) {
    expect(travelling).toHaveLength(100);
    expect(travelling.map(({ team_id }) => team_id)).not.toContain(last.made.team.id);
  }
  const context = await contextOf(fixture, opened);
  await fixture.ask(invitations.accept, { team_id: last.made.team.id }, context);
  await fixture.ask(teams.create, { name: randomUUID() }, context);
  const after = await fixture.ask(sessions.verify, { id: opened.session_id }, gateway);
  expect(after.teams.map(({ team_id }) => team_id)).toContain(last.made.team.id);
  expect(after.teams).toHaveLength(102);
});

it('invitations to teams that were deleted since do not count among the oldest hundred', async () => {
  const person = await memberOf(0);
  await addTeams(person.userId, 100, 'invited');
  await fixture.query(
    'UPDATE team SET deleted_at = now() WHERE id IN (SELECT team_id FROM membership WHERE user_id = $1)',
    [person.userId],
  );
  const { made } = await invite(person);
  const { teams: shown } = await fixture.ask(users.profile, {}, person.context);
  expect(shown.map(({ id }) => id)).toEqual([made.team.id]);
});

it('of the invitations that others made, however many, the profile shows the oldest hundred, and one that is declined makes room for the next', async () => {
  const person = await memberOf(2);
  await addTeams(person.userId, 6_000, 'invited');
  await fixture.query('ANALYZE membership, team');
  const key = await fixture.wholeKeyOf(person.userId);
  const opened = await logIn(fixture, person);
  const context = await contextOf(fixture, opened);
  const invited = async () =>
    (await fixture.ask(users.profile, {}, context)).teams.filter(({ status }) => status === 'invited');
  const sent = await allStatementsDuring(async () => {
    const { teams: own } = await fixture.ask(users.profile, {}, context);
    expect(own).toHaveLength(102);
    await fixture.verify(key);
    await fixture.ask(sessions.verify, { id: opened.session_id }, gateway);
  });
  const reads = sent.filter(({ text }) => text.includes('membership'));
  expect(reads).toHaveLength(3);
  for (const read of reads) expect(await mostRowsRead(fixture, read)).toBeLessThan(1_000);
  const shown = await invited();
  const declined = shown.find(({ role }) => role === 'member');
  await fixture.ask(members.remove, { team_id: declined?.id ?? '', user_id: person.userId }, context);
  const later = await invited();
  expect(later).toHaveLength(100);
  expect(later.filter(({ id }) => shown.every((one) => one.id !== id))).toHaveLength(1);
});

it('of the operator’s teams, however many, the profile shows the 200 that were joined first, and reads few more', async () => {
  const operator = await fixture.verify(fixture.admin);
  await addTeams(operator.user_id, 6_000);
  await fixture.query(
    `UPDATE membership SET created_at = created_at - interval '1 day' WHERE user_id = $1 AND id IN (
    SELECT id FROM membership WHERE user_id = $1 ORDER BY id LIMIT 150)`,
    [operator.user_id],
  );
  await fixture.query('ANALYZE membership, team');
  const first = await fixture.query<{ team_id: string }>(
    `SELECT team_id FROM membership WHERE user_id = $1 AND status = 'active' ORDER BY created_at, id LIMIT 200`,
    [operator.user_id],
  );
  const sent = await allStatementsDuring(async () => {
    const { teams: shown } = await fixture.call(fixture.admin, users.profile, {});
    expect(shown.map(({ id }) => id).toSorted()).toEqual(first.map(({ team_id }) => team_id).toSorted());
    const { teams: after } = await fixture.call(fixture.admin, users.updateProfile, { timezone: 'UTC' });
    expect(after).toEqual(shown);
  });
  const reads = sent.filter(({ text }) => text.includes('card_count'));
  expect(reads).toHaveLength(2);
  for (const read of reads) expect(await mostRowsRead(fixture, read)).toBeLessThan(1_000);
});
