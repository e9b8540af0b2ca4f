import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  deletionCalledOff,
  imagePolicies,
  members,
  teamDeletionAnswered,
  teamDeletionRequested,
  teamUpdated,
  type TeamDeletion,
  teams,
  workspaces,
} from '@atoll/contracts/teams';
import { Transactions } from '@atoll/database';
import { Outbox } from '@atoll/events';
import { allStatementsDuring, mostRowsRead, timeoutFactor, untilLockWaits } from '@atoll/testing';
import { errorOf, TeamsFixture, unknownId } from '../teams-fixture.js';
import { TeamsSettings } from '../teams-settings.js';
import { TeamDeletionService } from './team-deletion.service.js';
import { TeamUpkeep } from './team-upkeep.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start({
    deletionHolders: ['pods', 'gpuaas'],
    deletionPatienceMs: 12_000 * timeoutFactor,
  });
});
afterEach(() => void patience(12_000 * timeoutFactor));
afterAll(() => fixture.stop());

/** How long a deletion waits for answers from now on. */
const patience = (ms: number) => (fixture.get(TeamsSettings).deletionPatienceMs = ms);

const remove = (key: string, team_id: string): Promise<TeamDeletion> => fixture.call(key, teams.delete, { team_id });
const statusesTold = async (teamId: string, count: number) =>
  (await fixture.told(teamUpdated, teamId, ({ length }) => length >= count)).map(({ team }) => team?.status);

/** What a service that was asked says. */
async function answer(team_id: string, holder: string, holds: string | null, attempt?: string): Promise<void> {
  const [asked] = await fixture.told(teamDeletionRequested, team_id, ({ length }) => length > 0);
  const answered = { team_id, attempt_id: attempt ?? asked?.attempt_id ?? '', holder, holds };
  await fixture.app
    .get(Transactions, { strict: false })
    .run((manager) => fixture.app.get(Outbox, { strict: false }).add(manager, teamDeletionAnswered, answered));
}

async function statusOf(teamId: string): Promise<string | undefined> {
  return (await fixture.query<{ status: string }>('SELECT status FROM team WHERE id = $1', [teamId]))[0]?.status;
}

describe('deleting a team', () => {
  it('asks whoever may hold something of it, and deletes it, its keys and its place in every listing', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const [key = ''] = keys;
    // The team has given back its pool.
    await fixture.query(`INSERT INTO team_capacity VALUES ($1, '{}', false, 2)`, [team.id]);
    const deleted = remove(key, team.id);
    await answer(team.id, 'pods', null);
    await answer(team.id, 'gpuaas', null);
    expect(await deleted).toEqual({ deleting: null });
    expect((await errorOf(fixture.verify(key))).code).toBe('unauthenticated');
    expect((await errorOf(fixture.call(fixture.admin, teams.get, { team_id: team.id }))).code).toBe('not_found');
    expect((await fixture.call(fixture.admin, teams.list, { limit: 100 })).data.map(({ id }) => id)).not.toContain(
      team.id,
    );
    expect((await errorOf(remove(fixture.admin, team.id))).code).toBe('not_found');
    expect(await statusesTold(team.id, 3)).toEqual(['active', 'deleting', 'deleted']);
    for (const { user_id } of team.members) expect(fixture.credentialsChanged).toContain(user_id);
    expect(await fixture.query('SELECT FROM team WHERE id = $1 AND deleted_at IS NOT NULL', [team.id])).toHaveLength(1);
    expect(await fixture.query('SELECT FROM deletion_answer')).toEqual([]);
  });

  it('does not while something is held: it is active again, and the caller is told what', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const deleted = errorOf(remove(keys[0] ?? '', team.id));
    await answer(team.id, 'pods', 'pod trainer-abcde');
    await answer(team.id, 'gpuaas', null);
    const refused = await deleted;
    expect([refused.code, refused.message]).toEqual(['conflict', 'The team still holds something: pod trainer-abcde.']);
    expect(await fixture.call(keys[0] ?? '', teams.get, { team_id: team.id })).toMatchObject({ status: 'active' });
    expect(await statusesTold(team.id, 3)).toEqual(['active', 'deleting', 'active']);
    const [asked] = await fixture.told(teamDeletionRequested, team.id, ({ length }) => length === 1);
    const [calledOff] = await fixture.told(deletionCalledOff, team.id, ({ length }) => length === 1);
    expect(calledOff?.attempt_id).toBe(asked?.attempt_id);
    expect(await fixture.query('SELECT FROM deletion_answer')).toEqual([]);
  });

  it('does not where somebody does not answer in time; an answer to another attempt, or too late, counts for nothing', async () => {
    patience(500);
    const { team } = await fixture.createTeam();
    const deleted = errorOf(remove(fixture.admin, team.id));
    await answer(team.id, 'pods', null);
    await answer(team.id, 'gpuaas', null, unknownId);
    expect((await deleted).code).toBe('unavailable');
    expect(await statusOf(team.id)).toBe('active');
    await answer(team.id, 'gpuaas', null);
    await until(async () => (await fixture.query('SELECT FROM outbox')).length === 0);
    expect(await fixture.query('SELECT FROM deletion_answer')).toEqual([]);
  });

  it('takes no answer that one holder gives in the name of another', async () => {
    patience(500);
    const { team } = await fixture.createTeam();
    const deleted = errorOf(remove(fixture.admin, team.id));
    const [asked] = await fixture.told(teamDeletionRequested, team.id, ({ length }) => length > 0);
    const answered = { team_id: team.id, attempt_id: asked?.attempt_id ?? '', holds: null };
    await fixture.tell(teamDeletionAnswered, { ...answered, holder: 'gpuaas' }, 'gpuaas');
    await fixture.tell(teamDeletionAnswered, { ...answered, holder: 'pods' }, 'gpuaas');
    expect((await deleted).code).toBe('unavailable');
    expect(await statusOf(team.id)).toBe('active');
  });

  it('keeps no answer that comes beside what ends the attempt', async () => {
    const { team } = await fixture.createTeam();
    await fixture.query(
      `UPDATE team SET status = 'deleting', deletion_attempt_id = $2, deletion_deadline = now() + interval '1 minute' WHERE id = $1`,
      [team.id, unknownId],
    );
    let told: Promise<void> | undefined;
    await fixture.app.get(Transactions, { strict: false }).run(async (manager) => {
      await manager.query('SELECT FROM team WHERE id = $1 FOR NO KEY UPDATE', [team.id]);
      told = fixture.tell(
        teamDeletionAnswered,
        { team_id: team.id, attempt_id: unknownId, holder: 'pods', holds: null },
        'pods',
      );
      await untilLockWaits(fixture, { unless: told });
      await manager.query(
        `UPDATE team SET status = 'active', deletion_attempt_id = NULL, deletion_deadline = NULL WHERE id = $1`,
        [team.id],
      );
    });
    await told;
    expect(await fixture.query('SELECT FROM deletion_answer')).toEqual([]);
  });

  it('lets nothing new begin meanwhile, and cannot be begun twice', async () => {
    const { team, userIds } = await fixture.createTeam('member');
    const team_id = team.id;
    const deleted = errorOf(remove(fixture.admin, team_id));
    await fixture.told(teamDeletionRequested, team_id, ({ length }) => length > 0);
    expect(await fixture.call(fixture.admin, teams.get, { team_id })).toMatchObject({ status: 'deleting' });
    const { policy_id } = team.policy_info;
    const attempts = [
      remove(fixture.admin, team_id),
      fixture.call(fixture.admin, teams.update, { team_id, name: 'x' }),
      fixture.call(fixture.admin, members.add, { team_id, email: 'late@example.com', name: 'x', role: 'viewer' }),
      fixture.call(fixture.admin, members.issueKey, { team_id, user_id: userIds[0] ?? '' }),
      fixture.call(fixture.admin, workspaces.create, { team_id, name: 'x' }),
      fixture.call(fixture.admin, imagePolicies.assign, { id: policy_id, team_id }),
    ];
    for (const { code } of await Promise.all(attempts.map(errorOf))) expect(code).toBe('conflict');
    await answer(team_id, 'pods', 'pod trainer-abcde');
    await answer(team_id, 'gpuaas', null);
    expect((await deleted).message).toContain('pod trainer-abcde');
  });

  it('is for an owner or the operator, suspended or not', async () => {
    const { team, keys } = await fixture.createTeam('team_owner', 'team_admin', 'viewer');
    const [owner = '', ...others] = keys;
    for (const key of others) expect((await errorOf(remove(key, team.id))).code).toBe('forbidden');
    await fixture.call(fixture.admin, teams.suspend, { team_id: team.id });
    const deleted = remove(owner, team.id);
    await Promise.all([answer(team.id, 'pods', null), answer(team.id, 'gpuaas', null)]);
    expect(await deleted).toEqual({ deleting: null });
  });
});

describe('a deletion whose process died', () => {
  it('is called off once its time is over, and not before', async () => {
    const { team } = await fixture.createTeam();
    const deletion = fixture.app.get(TeamDeletionService);
    const leave = (deadline: string) =>
      fixture.query(
        `UPDATE team SET status = 'deleting', deletion_attempt_id = gen_random_uuid(), deletion_deadline = ${deadline} WHERE id = $1`,
        [team.id],
      );
    await leave(`now() + interval '1 minute'`);
    await deletion.callOffAbandoned(team.id);
    expect(await statusOf(team.id)).toBe('deleting');
    await leave(`now() - interval '1 second'`);
    await Promise.all([deletion.callOffAbandoned(team.id), deletion.callOffAbandoned(team.id)]);
    expect(await statusOf(team.id)).toBe('active');
    expect(await statusesTold(team.id, 2)).toEqual(['active', 'active']);
  });

  it('is found without a look at all whose time has not come', async () => {
    await fixture.query(
      `INSERT INTO team (id, name, description, policy_id, deletion_deadline, forced_deletion_due_at)
       SELECT gen_random_uuid(), 'Later', '', p.id, now() + interval '1 hour', now() + interval '1 hour'
       FROM image_policy p, generate_series(1, 2000) WHERE p.is_default`,
    );
    await fixture.query('ANALYZE team');
    const sent = await allStatementsDuring(() => fixture.app.get(TeamUpkeep, { strict: false }).look());
    const looks = sent.filter(({ text }) => text.includes('is_forced'));
    expect(looks).not.toEqual([]);
    for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(100);
  });
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const endMs = Date.now() + 90_000 * timeoutFactor; !(await holds()); await delay(10))
    if (Date.now() > endMs) throw new Error('It did not come about.');
}
