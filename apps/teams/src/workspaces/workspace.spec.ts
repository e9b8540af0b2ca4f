import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { teams, teamUpdated, workspaces } from '@atoll/contracts/teams';
import { errorOf, TeamsFixture, unknownId } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
  fixture.asManyReplicas();
});
afterAll(() => fixture.stop());

describe('the workspaces of a team', () => {
  it('are made, listed in order from page 0, told of with the team, and deleted', async () => {
    const { team, keys } = await fixture.createTeam('team_admin', 'viewer');
    const [admin = '', viewer = ''] = keys;
    const made = await fixture.call(admin, workspaces.create, { team_id: team.id, name: 'training' }, 'workspace-1');
    expect(made).toEqual({ id: expect.any(String), name: 'training', team_id: team.id });
    expect(await fixture.call(admin, workspaces.create, { team_id: team.id, name: 'training' }, 'workspace-1')).toEqual(
      made,
    );
    const [first] = team.workspaces;
    const all = [{ ...first, team_id: team.id }, made];
    expect(await fixture.call(viewer, workspaces.list, { team_id: team.id })).toEqual({
      data: all,
      pagination: { page: 0, limit: 10, total: 2 },
    });
    expect((await fixture.call(viewer, workspaces.list, { team_id: team.id, page: 1, limit: 1 })).data).toEqual([made]);
    expect((await fixture.call(viewer, teams.get, { team_id: team.id })).workspaces).toEqual([
      first,
      { id: made.id, name: 'training' },
    ]);
    expect(await fixture.call(admin, workspaces.delete, { workspace_id: made.id })).toEqual({});
    expect((await errorOf(fixture.call(admin, workspaces.delete, { workspace_id: made.id }))).code).toBe('not_found');
    const told = await fixture.told(teamUpdated, team.id, ({ length }) => length === 3);
    expect(told.map((change) => [change.is_complete, ...change.workspaces])).toEqual([
      [true, { ...first, is_deleted: false }],
      [false, { id: made.id, name: 'training', is_deleted: false }],
      [false, { id: made.id, name: 'training', is_deleted: true }],
    ]);
    expect(told.slice(1).map((change) => change.team)).toEqual([undefined, undefined]);
  });

  it('are renamed, the default one too, and published by their new name where it is one', async () => {
    const { team, keys } = await fixture.createTeam('team_admin', 'member');
    const [admin = '', member = ''] = keys;
    const id = team.workspaces[0]?.id ?? '';
    const rename = (name: string, key = admin) => fixture.call(key, workspaces.rename, { workspace_id: id, name });
    expect(await rename('training')).toEqual({ id, name: 'training', team_id: team.id });
    expect(await rename('training')).toMatchObject({ name: 'training' });
    await fixture.call(admin, workspaces.create, { team_id: team.id, name: 'lab' });
    const taken = await errorOf(rename('lab'));
    expect([taken.code, taken.message]).toEqual(['conflict', 'The team already has a workspace with this name.']);
    expect((await errorOf(rename('mine', member))).code).toBe('forbidden');
    const told = await fixture.told(teamUpdated, team.id, ({ length }) => length === 3);
    expect(told.map((change) => change.workspaces.map(({ name }) => name))).toEqual([
      ['default'],
      ['training'],
      ['lab'],
    ]);
    await fixture.call(fixture.admin, teams.suspend, { team_id: team.id });
    expect((await errorOf(rename('late'))).code).toBe('team_suspended');
  });

  it('are renamed to what a workspace of another team is called', async () => {
    const [one, other] = [await fixture.createTeam('team_admin'), await fixture.createTeam('team_admin')];
    await fixture.call(other.keys[0] ?? '', workspaces.create, { team_id: other.team.id, name: 'their own' });
    const workspace_id = one.team.workspaces[0]?.id ?? '';
    expect(await fixture.call(one.keys[0] ?? '', workspaces.rename, { workspace_id, name: 'their own' })).toMatchObject(
      {
        name: 'their own',
      },
    );
  });

  it('of two that take one name at once, one is refused', async () => {
    const { team } = await fixture.createTeam();
    const ids = [team.workspaces[0]?.id ?? ''];
    ids.push((await fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'second' })).id);
    const renamed = await Promise.allSettled(
      ids.map((workspace_id) => fixture.call(fixture.admin, workspaces.rename, { workspace_id, name: 'one' })),
    );
    expect(renamed.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  });

  it('are no two of one name in a team, also when both are made at once', async () => {
    const { team } = await fixture.createTeam();
    const create = () => fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'lab' });
    const made = await Promise.allSettled([create(), create(), create()]);
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const one of made) if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'conflict' });
    const other = await fixture.createTeam();
    expect(await fixture.call(fixture.admin, workspaces.create, { team_id: other.team.id, name: 'lab' })).toMatchObject(
      { name: 'lab' },
    );
  });

  it('keep the default one', async () => {
    const { team } = await fixture.createTeam();
    const workspace_id = team.workspaces[0]?.id ?? '';
    expect((await errorOf(fixture.call(fixture.admin, workspaces.delete, { workspace_id }))).code).toBe('conflict');
  });

  it('are at most 1000', async () => {
    const { team } = await fixture.createTeam();
    await fixture.query(
      `INSERT INTO workspace (id, team_id, name) SELECT gen_random_uuid(), $1, n::text FROM generate_series(1, 998) n`,
      [team.id],
    );
    await fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'the last' });
    const refused = await errorOf(
      fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'one too many' }),
    );
    expect([refused.code, refused.message]).toEqual(['conflict', 'A team has at most 1000 workspaces.']);
  });

  it('are created one in 7.2 minutes once 1000 were, also if none of them is left; by the operator any time', async () => {
    const [{ team, keys }, other] = [await fixture.createTeam('team_owner'), await fixture.createTeam('team_owner')];
    const createAs = (key: string, name: string, team_id = team.id) =>
      fixture.call(key, workspaces.create, { team_id, name });
    const create = (name: string) => createAs(keys[0] ?? '', name);
    await fixture.query('DELETE FROM log_in_bucket');
    await create('one');
    // As if there had been 998 before it, and all were deleted.
    await fixture.query(`UPDATE log_in_bucket SET full_at = full_at + 998 * interval '432 s'`);
    const { id } = await create('two');
    await fixture.call(keys[0] ?? '', workspaces.delete, { workspace_id: id });
    expect(await errorOf(create('three'))).toMatchObject({
      code: 'too_many_requests',
      message: 'A team creates at most 1000 workspaces at once, and one in 7.2 minutes after that.',
      details: { retryAfterSeconds: 432 },
    });
    await createAs(fixture.admin, 'of the operator');
    await createAs(other.keys[0] ?? '', 'of another team', other.team.id);
    await fixture.query(`UPDATE log_in_bucket SET full_at = full_at - interval '432 s'`);
    await create('three');
    expect(await errorOf(create('four'))).toMatchObject({ code: 'too_many_requests' });
  });

  it('are given back but not made while the team is suspended', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const [owner = ''] = keys;
    const { id } = await fixture.call(owner, workspaces.create, { team_id: team.id, name: 'old' });
    await fixture.call(fixture.admin, teams.suspend, { team_id: team.id });
    expect((await errorOf(fixture.call(owner, workspaces.create, { team_id: team.id, name: 'new' }))).code).toBe(
      'team_suspended',
    );
    expect(await fixture.call(owner, workspaces.delete, { workspace_id: id })).toEqual({});
  });

  it('are not there where the team is not', async () => {
    const { team } = await fixture.createTeam();
    await fixture.call(fixture.admin, teams.delete, { team_id: team.id });
    const workspace_id = team.workspaces[0]?.id ?? '';
    for (const id of [unknownId, workspace_id]) {
      expect((await errorOf(fixture.call(fixture.admin, workspaces.delete, { workspace_id: id }))).message).toBe(
        'No such workspace.',
      );
      const renamed = fixture.call(fixture.admin, workspaces.rename, { workspace_id: id, name: 'x' });
      expect((await errorOf(renamed)).message).toBe('No such workspace.');
    }
    expect((await errorOf(fixture.call(fixture.admin, workspaces.list, { team_id: team.id }))).code).toBe('not_found');
    expect((await errorOf(fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'x' }))).code).toBe(
      'not_found',
    );
  });
});
