import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  imagePolicies,
  invitations,
  members,
  membershipChanged,
  teamBatches,
  teams,
  type NamedTeam,
  type NewMember,
} from '@atoll/contracts/teams';
import { contextOf, logIn, somebody } from '../sessions/session-fixture.js';
import { errorOf, operatorEmail, TeamsFixture, unknownId } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

let sequence = 0;
const person = (role: NewMember['role'] = 'member'): NewMember => {
  sequence += 1;
  return { email: `person-${sequence}@example.com`, name: `Person ${sequence}`, role };
};

describe('a team with an image policy', () => {
  it('is created with it, or not at all', async () => {
    const policy = await fixture.call(fixture.admin, imagePolicies.create, { name: 'approved' });
    const created = await fixture.call(fixture.admin, teamBatches.create, {
      name: 'With policy',
      members: [person('team_owner')],
      image_policy_id: policy.id,
    });
    expect(created.policy_info).toEqual({ policy_id: policy.id, policy_name: 'approved' });
    expect(created.members.map(({ email }) => email)).not.toContain(operatorEmail);
    const refused = { name: 'Without', members: [person('team_owner')], image_policy_id: unknownId };
    expect(await errorOf(fixture.call(fixture.admin, teamBatches.create, refused))).toMatchObject({
      code: 'not_found',
    });
    expect(await fixture.query(`SELECT FROM team WHERE name = 'Without'`)).toEqual([]);
    expect(await fixture.query(`SELECT FROM "user" WHERE email = $1`, [refused.members[0]?.email])).toEqual([]);
  });

  it('takes the operator', async () => {
    const { userIds } = await fixture.createTeam('team_owner');
    const key = await fixture.wholeKeyOf(userIds[0] ?? '');
    const policy = await fixture.call(fixture.admin, imagePolicies.create, { name: 'x' });
    const asked = { name: 'A', image_policy_id: policy.id };
    expect(await errorOf(fixture.call(key, teamBatches.create, asked))).toMatchObject({ code: 'forbidden' });
    expect((await fixture.call(key, teamBatches.create, { name: 'A' })).policy_info.policy_name).toBe('default');
  });
});

describe('people who are invited together', () => {
  it('become members together, each with a key, an invitation and an event', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const { members } = await fixture.call(keys[0] ?? '', teamBatches.addMembers, {
      team_id: team.id,
      members: [person(), person('viewer')],
    });
    expect(members).toMatchObject([
      { role: 'member', status: 'invited', api_key: expect.stringMatching(/^atl_/), invitation: expect.anything() },
      { role: 'viewer', status: 'invited', api_key: expect.stringMatching(/^atl_/), invitation: expect.anything() },
    ]);
    expect((await fixture.call(keys[0] ?? '', invitations.list, { team_id: team.id })).data).toHaveLength(3);
    await fixture.told(membershipChanged, team.id, (told) => told.length === 3);
  });

  it('become members all or none: one who is already, one who is named twice, one who may not be made', async () => {
    const { team, keys } = await fixture.createTeam('team_owner', 'team_admin');
    const [owner = '', admin = ''] = keys;
    const ask = (key: string, members: NewMember[]) =>
      errorOf(fixture.call(key, teamBatches.addMembers, { team_id: team.id, members }));
    const fresh = person();
    const known = team.members[0]?.email ?? '';
    expect(await ask(owner, [fresh, { ...person(), email: known }])).toMatchObject({ code: 'conflict' });
    expect(await ask(owner, [fresh, { ...fresh, role: 'viewer' }])).toMatchObject({ code: 'invalid_input' });
    expect(await ask(admin, [fresh, person('team_owner')])).toMatchObject({ code: 'forbidden' });
    expect((await fixture.call(owner, teams.get, { team_id: team.id })).members).toHaveLength(2);
  });

  it('are not told to a kept answer in full', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const asked = { team_id: team.id, members: [person(), person()] };
    const first = await fixture.call(keys[0] ?? '', teamBatches.addMembers, asked, 'k');
    const again = await fixture.call(keys[0] ?? '', teamBatches.addMembers, asked, 'k');
    expect(again.members.map(({ user_id }) => user_id)).toEqual(first.members.map(({ user_id }) => user_id));
    expect(JSON.stringify(again)).not.toContain(first.members[1]?.api_key);
  });
});

describe('looking for members', () => {
  it('finds part of a name or an address in either case, and counts all that match', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const [key = ''] = keys;
    const people: NewMember[] = Array.from({ length: 25 }, (_, at) => ({
      email: `zoe-${at}@example.com`,
      name: at === 7 ? 'Straße_%' : `N${at}`,
      role: 'member',
    }));
    await fixture.call(key, teamBatches.addMembers, { team_id: team.id, members: people });
    const find = (search: string, page = 0, limit = 10) =>
      fixture.call(key, teamBatches.findMembers, { team_id: team.id, page, limit, search });
    expect((await find('ZOE-')).pagination).toEqual({ page: 0, limit: 10, total: 25 });
    expect((await find('STRASSE')).data).toEqual([]);
    expect((await find('_%')).data.map(({ name }) => name)).toEqual(['Straße_%']);
    expect((await find('nobody')).pagination).toEqual({ page: 0, limit: 10, total: 0 });
    const last = await find('zoe-', 1_000_000);
    expect([last.pagination.page, last.data.map(({ email }) => email)]).toEqual([
      2,
      people.slice(20).map(({ email }) => email),
    ]);
    expect((await find('', 0, 1000)).data).toHaveLength(26);
  });

  it('tells when a person was invited, and when they accepted', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const person = await somebody(fixture);
    await fixture.call(keys[0] ?? '', members.add, {
      team_id: team.id,
      email: person.email,
      name: 'Ada',
      role: 'member',
    });
    const search = { team_id: team.id, page: 0, limit: 10, search: person.email };
    const seen = async () => (await fixture.call(keys[0] ?? '', teamBatches.findMembers, search)).data[0];
    expect(await seen()).toMatchObject({ status: 'invited', joined_at: null });
    await fixture.query(
      `UPDATE membership SET created_at = now() - interval '1 day' WHERE user_id = $1 AND team_id = $2`,
      [person.userId, team.id],
    );
    const before = Date.now();
    await fixture.ask(invitations.accept, { team_id: team.id }, await contextOf(fixture, await logIn(fixture, person)));
    const { created_at = '', joined_at } = (await seen()) ?? {};
    expect(Date.parse(created_at)).toBeLessThan(before - 3_600_000);
    expect(Date.parse(joined_at ?? '')).toBeGreaterThanOrEqual(before);
  });

  it('tells nothing of the account of a person who has not accepted, and of a second factor only to who manages the team', async () => {
    const { team, keys, userIds } = await fixture.createTeam('team_owner', 'viewer');
    const [owner = '', viewer = ''] = keys;
    await fixture.query(`UPDATE "user" SET timezone = 'Asia/Tokyo' WHERE id = ANY ($1)`, [userIds]);
    for (const id of userIds)
      await fixture.query(`INSERT INTO second_factor (user_id, sealed, is_confirmed) VALUES ($1, 'x', true)`, [id]);
    const seen = async (key: string) =>
      (await fixture.call(key, teamBatches.findMembers, { team_id: team.id, page: 0, limit: 10 })).data;
    expect(await seen(owner)).toMatchObject([
      { timezone: 'UTC', second_factor: false },
      { timezone: 'UTC', second_factor: false },
    ]);
    await fixture.query(`UPDATE membership SET status = 'active' WHERE team_id = $1 AND role = 'team_owner'`, [
      team.id,
    ]);
    expect(await seen(owner)).toMatchObject([
      { timezone: 'Asia/Tokyo', second_factor: true },
      { second_factor: false },
    ]);
    expect(await seen(viewer)).toMatchObject([{ timezone: 'Asia/Tokyo', second_factor: false }, {}]);
    // Others have one still.
    await fixture.query('DELETE FROM second_factor WHERE user_id = $1', [userIds[0]]);
    expect(await seen(owner)).toMatchObject([{ second_factor: false }, {}]);
  });
});

describe('what only the operator has', () => {
  it('the names of all teams, each once, without deleted ones', async () => {
    const { team } = await fixture.createTeam('team_owner');
    const { team: gone } = await fixture.createTeam('team_owner');
    await fixture.call(fixture.admin, teams.delete, { team_id: gone.id });
    const all: NamedTeam[] = [];
    for (;;) {
      const last = all.at(-1)?.id;
      const page = await fixture.call(fixture.admin, teamBatches.names, last === undefined ? {} : { team_id: last });
      if (page.teams.length === 0) break;
      all.push(...page.teams);
    }
    const ids = all.map(({ id }) => id);
    expect(ids).toContain(team.id);
    expect(ids).not.toContain(gone.id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('a team that is ended twice is gone twice; to anybody else it is not found, as one that never was', async () => {
    const { team } = await fixture.createTeam('team_owner');
    const other = await fixture.createTeam('team_owner');
    expect(await errorOf(fixture.call(other.keys[0] ?? '', teamBatches.end, { team_id: team.id }))).toMatchObject({
      code: 'not_found',
    });
    expect(await fixture.call(fixture.admin, teamBatches.end, { team_id: team.id })).toEqual({ deleting: null });
    expect(await fixture.call(fixture.admin, teamBatches.end, { team_id: team.id })).toEqual({ deleting: null });
    expect(await errorOf(fixture.call(other.keys[0] ?? '', teamBatches.end, { team_id: team.id }))).toMatchObject({
      code: 'not_found',
    });
    expect(await errorOf(fixture.call(fixture.admin, teamBatches.end, { team_id: unknownId }))).toMatchObject({
      code: 'not_found',
    });
  });

  it('the workspaces of all teams; others have those of their own', async () => {
    const [one, two] = [await fixture.createTeam('team_owner'), await fixture.createTeam('viewer', 'team_owner')];
    const workspace_ids = [one, two].map(({ team }) => team.workspaces[0]?.id ?? '');
    const find = async (key = '') =>
      (await fixture.call(key, teamBatches.workspaces, { workspace_ids: [...workspace_ids, unknownId] })).workspaces
        .map(({ id }) => id)
        .sort();
    expect(await find(fixture.admin)).toEqual(workspace_ids.toSorted());
    expect(await find(two.keys[0])).toEqual([workspace_ids[1]]);
  });

  it('of another team nothing is found, and nobody is added', async () => {
    const { team } = await fixture.createTeam('team_owner');
    const { keys } = await fixture.createTeam('team_owner');
    const [key = ''] = keys;
    expect(
      await errorOf(fixture.call(key, teamBatches.findMembers, { team_id: team.id, page: 0, limit: 1 })),
    ).toMatchObject({
      code: 'not_found',
    });
    expect(
      await errorOf(fixture.call(key, teamBatches.addMembers, { team_id: team.id, members: [person()] })),
    ).toMatchObject({
      code: 'not_found',
    });
    expect(await errorOf(fixture.call(key, teamBatches.names, {}))).toMatchObject({ code: 'forbidden' });
  });
});
