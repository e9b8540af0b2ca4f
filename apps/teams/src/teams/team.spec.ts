import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isWellFormedApiKey, maskApiKey } from '@atoll/api-keys';
import { requireUser, type TeamRole } from '@atoll/contracts';
import {
  membershipChanged,
  teams,
  teamUpdated,
  workspaces,
  type CreateTeam,
  type Team,
  type TeamMember,
} from '@atoll/contracts/teams';
import { systemContext } from '@atoll/rpc';
import { errorOf, operatorEmail, TeamsFixture, unknownId } from '../teams-fixture.js';

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** That of a user is random, so that it tells no age. */
const randomUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const masked = ({ invitation, ...member }: TeamMember): TeamMember => ({
  ...member,
  api_key: maskApiKey(member.api_key ?? ''),
  ...(invitation && { invitation: { ...invitation, url: null } }),
});

describe('creating a team', () => {
  it('answers with everything the reference lists, the caller first as team_owner, each with a key to this team', async () => {
    const team = await fixture.call(fixture.admin, teams.create, {
      name: 'Research',
      description: 'Protein folding',
      members: [
        { email: 'Zoë.First@Example.com', name: 'Zoë', role: 'member' },
        { email: 'ada@example.com', name: 'Ada', role: 'team_admin' },
      ],
    });
    const member = (email: string, name: string, role: string) => ({
      user_id: expect.stringMatching(randomUuid),
      status: name === 'Administrator' ? 'active' : 'invited',
      email,
      name,
      role,
      api_key: expect.stringMatching(/^atl_[0-9A-Za-z]{38}$/),
      api_token: true,
      expiry_date: expect.stringMatching(instant),
      ip_whitelist: '',
      ...(name !== 'Administrator' && {
        invitation: {
          url: expect.stringMatching(/^http:\/\/localhost:3000\/link#/),
          expires_at: expect.stringMatching(instant),
        },
      }),
    });
    expect(team).toEqual({
      id: expect.stringMatching(uuid),
      name: 'Research',
      description: 'Protein folding',
      created_at: expect.stringMatching(instant),
      status: 'active',
      is_suspended: false,
      require_second_factor: false,
      has_pool_subscription: false,
      members: [
        member(operatorEmail, 'Administrator', 'team_owner'),
        member('zoë.first@example.com', 'Zoë', 'member'),
        member('ada@example.com', 'Ada', 'team_admin'),
      ],
      policy_info: { policy_id: expect.stringMatching(uuid), policy_name: 'default' },
      workspaces: [{ id: expect.stringMatching(uuid), name: 'default' }],
    });
    for (const { api_key, expiry_date } of team.members) {
      expect(isWellFormedApiKey(api_key ?? '')).toBe(true);
      expect(Math.round((Date.parse(expiry_date ?? '') - Date.now()) / 86_400_000)).toBe(90);
    }
  });

  it('shows the keys in full that once: every later answer masks them, and no event holds one', async () => {
    const { team, keys } = await fixture.createTeam('member');
    expect(await fixture.call(keys[0] ?? '', teams.get, { team_id: team.id })).toEqual({
      ...team,
      members: team.members.map(masked),
    });
    await fixture.told(membershipChanged, team.id, (told) => told.length === 2);
    expect(JSON.stringify(fixture.events)).not.toMatch(/atl_/);
    const [row] = await fixture.query<{ dump: string }>(`SELECT string_agg(api_key::text, ' ') AS dump FROM api_key`);
    for (const { api_key } of team.members) expect(row?.dump).not.toContain(api_key);
  });

  it('tells of the team and of each member', async () => {
    const { team, userIds } = await fixture.createTeam('viewer');
    const [told] = await fixture.told(teamUpdated, team.id, ({ length }) => length === 1);
    expect(told).toEqual({
      team_id: team.id,
      revision: 1,
      team: { name: 'Research', is_suspended: false, status: 'active', default_workspace_id: team.workspaces[0]?.id },
      workspaces: team.workspaces.map((workspace) => ({ ...workspace, is_deleted: false })),
      is_complete: true,
    });
    const workspace_id = team.workspaces[0]?.id ?? '';
    await fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'lab' });
    await fixture.call(fixture.admin, workspaces.rename, { workspace_id, name: 'renamed' });
    await fixture.call(fixture.admin, teams.update, { team_id: team.id, name: 'Renamed' });
    const renamed = await fixture.told(teamUpdated, team.id, (all) => all.some((one) => one.team?.name === 'Renamed'));
    expect(renamed.at(-1)?.team).toMatchObject({ default_workspace_id: workspace_id });
    const members = await fixture.told(membershipChanged, team.id, ({ length }) => length === 2);
    expect(members).toContainEqual({
      team_id: team.id,
      revision: 1,
      user_id: userIds[0],
      role: 'viewer',
      is_invited: true,
      had_not_joined: true,
    });
    expect(members.map(({ is_invited = false }) => is_invited)).toEqual([false, true]);
    for (const { user_id } of team.members) expect(fixture.credentialsChanged).toContain(user_id);
  });

  it('leaves the name of a user who is known as it is', async () => {
    const { emails } = await fixture.createTeam('member');
    const again = await fixture.call(fixture.admin, teams.create, {
      name: 'x',
      members: [{ email: emails[0] ?? '', name: 'Renamed', role: 'member' }],
    });
    expect(again.members[1]).toMatchObject({ email: emails[0], name: 'Renamed' });
    const [user] = await fixture.query('SELECT name FROM "user" WHERE email = $1', [emails[0]]);
    expect(user).toEqual({ name: 'member' });
  });

  it('names the member who is named twice, in whatever case, or who is the caller', async () => {
    const person = (email: string) => ({ email, name: 'x', role: 'member' as const });
    const refused = async (members: CreateTeam['members']) =>
      errorOf(fixture.call(fixture.admin, teams.create, { name: 'x', members }));
    const twice = await refused([
      person('a@example.com'),
      person('b@example.com'),
      person('A@EXAMPLE.com'),
      person('b@example.com'),
    ]);
    expect([twice.code, twice.details.errors?.map(({ path }) => path)]).toEqual([
      'invalid_input',
      ['members.2.email', 'members.3.email'],
    ]);
    expect(twice.message).toBe('members.2.email must not be named twice (the first of 2 faults).');
    const own = await refused([person('c@example.com'), person(operatorEmail.toUpperCase())]);
    expect([own.code, own.details.errors?.map(({ path }) => path)]).toEqual(['invalid_input', ['members.1.role']]);
    expect(await fixture.query(`SELECT FROM "user" WHERE email = 'c@example.com'`)).toEqual([]);
  });

  const shown = ({ members }: Team) => members.map(({ email, role }) => [email, role]);
  const named = (email: string, role: TeamRole) => ({ email, name: 'As sent', role });

  it('by a user who is no operator: the caller is first among its members, as team_owner, named or not', async () => {
    const { userIds, emails } = await fixture.createTeam('member');
    const key = await fixture.wholeKeyOf(userIds[0] ?? '');
    const own = emails[0] ?? '';
    const others = [named('first@example.com', 'viewer'), named('second@example.com', 'team_owner')];
    const rest = others.map(({ email, role }) => [email, role]);
    for (const people of [others, [others[0]!, named(own.toUpperCase(), 'team_owner'), others[1]!]]) {
      expect(shown(await fixture.call(key, teams.create, { name: 'Whole', members: people }))).toEqual([
        [own, 'team_owner'],
        ...rest,
      ]);
    }
    const refused = await errorOf(
      fixture.call(key, teams.create, { name: 'x', members: [...others, named(own, 'viewer')] }),
    );
    expect([refused.code, refused.details.errors?.map(({ path }) => path)]).toEqual([
      'invalid_input',
      ['members.2.role'],
    ]);
  });

  it('by the operator who names a team_owner has those named for its members, and not the operator', async () => {
    const people = [named('first@example.com', 'viewer'), named('owner@example.com', 'team_owner')];
    const made = await fixture.call(fixture.admin, teams.create, { name: 'For others', members: people });
    expect(shown(made)).toEqual(people.map(({ email, role }) => [email, role]));
    const told = await fixture.told(membershipChanged, made.id, ({ length }) => length === 2);
    expect(told.map(({ user_id }) => user_id).toSorted()).toEqual(
      made.members.map(({ user_id }) => user_id).toSorted(),
    );
    expect(await fixture.call(fixture.admin, teams.get, { team_id: made.id })).toMatchObject({ id: made.id });
    // Named too, the operator is what they were named as.
    const both = [...people, named(operatorEmail, 'viewer')];
    expect(shown(await fixture.call(fixture.admin, teams.create, { name: 'Both', members: both }))).toEqual(
      both.map(({ email, role }) => [email, role]),
    );
    const self = [people[0]!, named(operatorEmail, 'team_owner')];
    expect(shown(await fixture.call(fixture.admin, teams.create, { name: 'Own', members: self }))).toEqual(
      self.map(({ email, role }) => [email, role]),
    );
    const alone = await fixture.call(fixture.admin, teams.create, { name: 'Alone', members: people.slice(0, 1) });
    expect(shown(alone)).toEqual([
      [operatorEmail, 'team_owner'],
      ['first@example.com', 'viewer'],
    ]);
  });

  it.each([
    { name: 'x\0' },
    { name: '' },
    { members: [] },
    { name: 'x', members: [{ email: 'no address', name: 'x', role: 'member' }] },
    { name: 'x', members: [{ email: 'a@example.com', name: 'x', role: 'platform_admin' }] },
  ])('refuses %j', async (body) => {
    expect((await errorOf(fixture.call(fixture.admin, teams.create, body as CreateTeam))).code).toBe('invalid_input');
  });

  // The gateway answers such a body with 400: what comes as far is of a newer release.
  it.each([
    ['is_suspended', { name: 'x', is_suspended: true }],
    ['id', { name: 'x', id: unknownId }],
    ['__proto__', JSON.parse('{"name":"x","__proto__":{"is_suspended":true}}') as object],
  ])('takes no %s', async (field, body) => {
    const { code, message } = await errorOf(fixture.call(fixture.admin, teams.create, body as CreateTeam));
    expect([code, message]).toEqual(['unavailable', expect.stringContaining(`does not know the field ${field}`)]);
  });

  it('is not for a key that opens one team, nor for a service', async () => {
    const { keys } = await fixture.createTeam('team_owner');
    const refused = await errorOf(fixture.call(keys[0] ?? '', teams.create, { name: 'x' }));
    expect([refused.code, refused.message]).toEqual(['forbidden', expect.stringContaining('is limited to one team')]);
    expect((await errorOf(fixture.ask(teams.create, { name: 'x' }, systemContext('pods')))).code).toBe('forbidden');
  });

  it('is not for a session of an account whose address nobody has shown to be theirs, which is told so', async () => {
    const { keys } = await fixture.createTeam('team_owner');
    const context = await fixture.contextOf(keys[0] ?? '', teams.create, { name: 'x' });
    const caller = { ...requireUser(context.caller), credential: { kind: 'session', id: unknownId } as const };
    const refused = await errorOf(fixture.ask(teams.create, { name: 'x' }, { ...context, caller }));
    expect([refused.code, refused.message]).toEqual(['forbidden', expect.stringMatching(/^Nobody has shown yet/)]);
  });
});

describe('an Idempotency-Key', () => {
  const body = { name: 'Once', members: [{ email: 'once@example.com', name: 'Once', role: 'member' as const }] };

  it('makes one team of two calls; the second is told the same, keys masked', async () => {
    const first = await fixture.call(fixture.admin, teams.create, body, 'key-1');
    const second = await fixture.call(fixture.admin, teams.create, body, 'key-1');
    expect(second).toEqual({ ...first, members: first.members.map(masked) });
    const [row] = await fixture.query<{ reply: string }>(
      `SELECT string_agg(reply::text, '') AS reply FROM idempotency_key`,
    );
    for (const { api_key } of first.members) expect(row?.reply).not.toContain(api_key);
  });

  it('makes one team of two calls at once; the loser is told that it is running, or the same', async () => {
    const calls = await Promise.allSettled(
      [1, 2].map(() => fixture.call(fixture.admin, teams.create, { name: 'At once' }, 'key-2')),
    );
    for (const call of calls) {
      if (call.status === 'rejected') expect(call.reason).toMatchObject({ code: 'conflict' });
    }
    expect(calls.some(({ status }) => status === 'fulfilled')).toBe(true);
    expect(await fixture.query(`SELECT FROM team WHERE name = 'At once'`)).toHaveLength(1);
  });

  it('with another body is a mistake', async () => {
    await fixture.call(fixture.admin, teams.create, body, 'key-3');
    expect((await errorOf(fixture.call(fixture.admin, teams.create, { name: 'Another' }, 'key-3'))).code).toBe(
      'idempotency_mismatch',
    );
  });
});

describe('reading teams', () => {
  it('lists to the operator all, to a member their own, to a key of one team that one', async () => {
    const mine = await fixture.createTeam('member');
    const all = await fixture.call(fixture.admin, teams.list, { limit: 100 });
    expect(all.pagination).toEqual({ page: 0, limit: 100, total: all.data.length });
    expect(all.data.map(({ created_at, id }) => created_at + id)).toEqual(
      all.data.map(({ created_at, id }) => created_at + id).toSorted(),
    );
    const own = await fixture.call(mine.keys[0] ?? '', teams.list, {});
    expect(own).toEqual({
      data: [{ ...mine.team, members: mine.team.members.map(masked) }],
      pagination: { page: 0, limit: 10, total: 1 },
    });
  });

  it('counts pages from 0, and is empty past the end', async () => {
    const all = await fixture.call(fixture.admin, teams.list, { limit: 100 });
    const second = await fixture.call(fixture.admin, teams.list, { page: 1, limit: 2 });
    expect(second.data).toEqual(all.data.slice(2, 4));
    expect((await fixture.call(fixture.admin, teams.list, { page: 1_000_000_000, limit: 100 })).data).toEqual([]);
    for (const asked of [{ page: -1 }, { limit: 0 }, { limit: 101 }, { page: 1.5 }]) {
      expect((await errorOf(fixture.call(fixture.admin, teams.list, asked))).code).toBe('invalid_input');
    }
  });

  it('finds no team that is not there, for the operator too', async () => {
    expect((await errorOf(fixture.call(fixture.admin, teams.get, { team_id: unknownId }))).code).toBe('not_found');
  });
});

describe('changing a team', () => {
  it('changes what was sent, answers with the team, and publishes a new name, but neither a description nor what stayed as it was', async () => {
    const { team, keys } = await fixture.createTeam('team_admin');
    const renamed = await fixture.call(keys[0] ?? '', teams.update, { team_id: team.id, name: 'Renamed' });
    expect(renamed).toEqual({ ...team, name: 'Renamed', members: team.members.map(masked) });
    expect(await fixture.call(keys[0] ?? '', teams.update, { team_id: team.id, description: '' })).toEqual({
      ...renamed,
      description: '',
    });
    expect(await fixture.call(keys[0] ?? '', teams.update, { team_id: team.id, name: 'Renamed' })).toEqual({
      ...renamed,
      description: '',
    });
    await fixture.call(keys[0] ?? '', teams.update, { team_id: team.id, name: 'Last', description: 'Both' });
    const told = await fixture.told(teamUpdated, team.id, (payloads) =>
      payloads.some(({ team: now }) => now?.name === 'Last'),
    );
    expect(told.map(({ revision, team: now, workspaces }) => [revision, now?.name, workspaces.length])).toEqual([
      [1, 'Research', 1],
      [2, 'Renamed', 0],
      [3, 'Last', 0],
    ]);
    expect(await fixture.query('SELECT revision, description FROM team WHERE id = $1', [team.id])).toEqual([
      { revision: 3, description: 'Both' },
    ]);
  });

  it('takes at least one field', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    expect((await errorOf(fixture.call(keys[0] ?? '', teams.update, { team_id: team.id }))).code).toBe('invalid_input');
  });

  it('is suspended by the operator, as often as they like, and told of once', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const owner = keys[0] ?? '';
    expect((await errorOf(fixture.call(owner, teams.suspend, { team_id: team.id }))).code).toBe('forbidden');
    for (let time = 0; time < 2; time += 1) {
      expect(await fixture.call(fixture.admin, teams.suspend, { team_id: team.id })).toMatchObject({
        is_suspended: true,
        status: 'active',
      });
    }
    expect((await errorOf(fixture.call(owner, teams.update, { team_id: team.id, name: 'x' }))).code).toBe(
      'team_suspended',
    );
    expect(
      await fixture.call(fixture.admin, teams.update, { team_id: team.id, name: 'By the operator' }),
    ).toMatchObject({
      is_suspended: true,
    });
    expect(await fixture.call(owner, teams.get, { team_id: team.id })).toMatchObject({ is_suspended: true });
    expect(await fixture.call(fixture.admin, teams.unsuspend, { team_id: team.id })).toMatchObject({
      is_suspended: false,
    });
    const told = await fixture.told(teamUpdated, team.id, ({ length }) => length === 4);
    expect(told.map(({ team: now }) => now?.is_suspended)).toEqual([false, true, true, false]);
  });

  it('is refused as one that is being deleted if it is suspended too, as every service refuses it', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    await fixture.query(`UPDATE team SET status = 'deleting', is_suspended = true WHERE id = $1`, [team.id]);
    const { code, message } = await errorOf(fixture.call(keys[0] ?? '', teams.update, { team_id: team.id, name: 'x' }));
    expect([code, message]).toEqual(['conflict', 'The team is being deleted.']);
  });
});
