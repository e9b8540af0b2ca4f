import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  maxWorkspacesPerUpdate,
  members,
  teamDirectory,
  teams,
  teamUpdated,
  workspaces,
  type TeamUpdate,
} from '@atoll/contracts/teams';
import { systemContext } from '@atoll/rpc';
import { logIn, somebody } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture, unknownId } from '../teams-fixture.js';

describe('the directory of teams for other services', () => {
  let fixture: TeamsFixture;
  const billing = () => systemContext('billing');
  beforeAll(async () => {
    fixture = await TeamsFixture.start();
  });
  afterAll(() => fixture.stop());

  async function pages(): Promise<TeamUpdate[][]> {
    const found: TeamUpdate[][] = [];
    for (;;) {
      const last = found.at(-1)?.at(-1);
      const workspace_id = last?.workspaces.at(-1)?.id;
      const after = { ...(last && { team_id: last.team_id }), ...(workspace_id !== undefined && { workspace_id }) };
      const { updates } = await fixture.ask(teamDirectory.page, after, billing());
      if (updates.length === 0) return found;
      found.push(updates);
    }
  }
  const of = async ({ id }: { id: string }) => (await pages()).flat().filter(({ team_id }) => team_id === id);
  const lookUp = async (asked: object) => (await fixture.ask(teamDirectory.lookUp, asked, billing())).updates;

  /** A team with many workspaces besides its default one. */
  async function largeTeam(count: number): Promise<string> {
    const { team } = await fixture.createTeam();
    await fixture.query(
      `INSERT INTO workspace (id, team_id, name) SELECT gen_random_uuid(), $1, 'many ' || n FROM generate_series(1, $2::int) n`,
      [team.id, count],
    );
    return team.id;
  }

  it('pages through every team as it was last published, deleted teams too', async () => {
    const { team } = await fixture.createTeam();
    const made = await fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'training' });
    const gone = (await fixture.createTeam()).team;
    await fixture.call(fixture.admin, teams.delete, { team_id: gone.id });
    const [created] = await fixture.told(teamUpdated, team.id, ({ length }) => length === 2);
    const ended = await fixture.told(teamUpdated, gone.id, (payloads) =>
      payloads.some((told) => told.team?.status === 'deleted'),
    );
    const both = [...(created?.workspaces ?? []), { id: made.id, name: 'training', is_deleted: false }];
    expect(await of(team)).toEqual([
      {
        ...created,
        revision: 2,
        workspaces: both.toSorted((one, other) => (one.id < other.id ? -1 : 1)),
        is_complete: true,
      },
    ]);
    expect(await of(gone)).toMatchObject([{ team: { status: 'deleted' }, revision: ended.at(-1)?.revision }]);
  });

  it('names every workspace once, whatever their number, and calls an update complete only where it holds them all', async () => {
    const ids = [
      await largeTeam(1_000),
      await largeTeam(maxWorkspacesPerUpdate - 1),
      await largeTeam(maxWorkspacesPerUpdate),
    ];
    await fixture.query(`INSERT INTO team (id, name, description, policy_id)
      SELECT gen_random_uuid(), 'bare', '', (SELECT id FROM image_policy WHERE is_default) FROM generate_series(1, 600)`);
    const found = await pages();
    for (const page of found) {
      expect(page.reduce((sum, { workspaces: some }) => sum + Math.max(1, some.length), 0)).toBeLessThanOrEqual(500);
      for (const { workspaces: some } of page) expect(some.length).toBeLessThanOrEqual(maxWorkspacesPerUpdate);
    }
    const updates = found.flat();
    const stored = await fixture.query<{ id: string }>('SELECT id FROM workspace ORDER BY id');
    const named = updates.flatMap(({ workspaces: some }) => some.map(({ id }) => id));
    expect(named.toSorted()).toEqual(stored.map(({ id }) => id));
    expect(updates.filter(({ team }) => team?.name === 'bare')).toHaveLength(600);
    const byTeam = Map.groupBy(updates, ({ team_id }) => team_id);
    for (const pieces of byTeam.values()) {
      const count = pieces.reduce((sum, { workspaces: some }) => sum + some.length, 0);
      for (const { is_complete, workspaces: some } of pieces) expect(!is_complete || some.length === count).toBe(true);
    }
    const isComplete = (id: string) => byTeam.get(id)?.map((update) => update.is_complete);
    expect(isComplete(ids[0] ?? '')?.every((complete) => !complete)).toBe(true);
    expect(isComplete(ids[2] ?? '')?.every((complete) => !complete)).toBe(true);
    const bare = updates.find(({ team }) => team?.name === 'bare');
    expect(bare?.is_complete).toBe(true);
  });

  it('looks up teams without their workspaces, and workspaces with their teams', async () => {
    const [one, other] = [(await fixture.createTeam()).team, (await fixture.createTeam()).team];
    const [first, second] = [one.workspaces[0], other.workspaces[0]];
    const standing = { name: 'Research', is_suspended: false, status: 'active', default_workspace_id: first?.id };
    const update = { team_id: one.id, revision: 1, team: standing, workspaces: [], is_complete: false };
    const asked = [{ ...first, is_deleted: false }];
    expect(await lookUp({ team_ids: [one.id, unknownId] })).toEqual([update]);
    expect(await lookUp({ workspace_ids: [first?.id, unknownId] })).toEqual([{ ...update, workspaces: asked }]);
    expect(await lookUp({ team_ids: [one.id], workspace_ids: [first?.id] })).toEqual([
      { ...update, workspaces: asked },
    ]);
    const both = await lookUp({ workspace_ids: [first?.id, second?.id] });
    expect(both.map(({ team_id }) => team_id).toSorted()).toEqual([one.id, other.id].toSorted());
    expect(await lookUp({ workspace_ids: [first?.id, second?.id], within_team_ids: [one.id] })).toEqual([
      { ...update, workspaces: asked },
    ]);
    expect(await lookUp({ team_ids: [unknownId], workspace_ids: [unknownId] })).toEqual([]);
    expect(await lookUp({})).toEqual([]);
  });

  it('looks up a thousand workspaces of one team in updates of bounded size', async () => {
    const id = await largeTeam(999);
    const rows = await fixture.query<{ id: string }>('SELECT id FROM workspace WHERE team_id = $1', [id]);
    const updates = await lookUp({ workspace_ids: rows.map((row) => row.id) });
    expect(updates).toHaveLength(1_000 / maxWorkspacesPerUpdate);
    expect(new Set(updates.flatMap(({ workspaces: some }) => some.map((each) => each.id))).size).toBe(1_000);
  });

  it('tells what users are in teams now, and nothing of who is no member, or of a team that is gone', async () => {
    const { team, userIds } = await fixture.createTeam('member', 'viewer');
    const gone = await fixture.createTeam('member');
    await fixture.call(fixture.admin, teams.delete, { team_id: gone.team.id });
    const [member = '', viewer = ''] = userIds;
    const roles = async (...pairs: [string, string][]) => {
      const asked = pairs.map(([user_id, team_id]) => ({ user_id, team_id }));
      const { members: found } = await fixture.ask(teamDirectory.roles, { members: asked }, billing());
      return found
        .map(({ user_id, role, is_suspended, is_invited }) => [user_id, role, is_suspended, is_invited])
        .toSorted();
    };
    const all = [[member, team.id] as [string, string], [viewer, team.id] as [string, string]];
    await fixture.query(`UPDATE membership SET status = 'active' WHERE team_id = $1 AND user_id = $2`, [
      team.id,
      viewer,
    ]);
    const both = [
      [member, 'member', false, true],
      [viewer, 'viewer', false, false],
    ].toSorted();
    expect(
      await roles(...all, [unknownId, team.id], [member, gone.team.id], [gone.userIds[0] ?? '', gone.team.id]),
    ).toEqual(both);
    await fixture.call(fixture.admin, teams.suspend, { team_id: team.id });
    await fixture.call(fixture.admin, members.changeRole, { team_id: team.id, user_id: viewer, role: 'team_admin' });
    expect(await roles([viewer, team.id])).toEqual([[viewer, 'team_admin', true, false]]);
    expect(await roles()).toEqual([]);
  });

  it('names the keys and sessions that live: none that was revoked, has expired, or lived out its grace', async () => {
    const { team, userIds } = await fixture.createTeam('member');
    const [userId = ''] = userIds;
    const keyOf = async () =>
      (
        await fixture.query<{ id: string }>('SELECT id FROM api_key WHERE user_id = $1 ORDER BY created_at DESC', [
          userId,
        ])
      )[0]?.id ?? '';
    const live = async (...credentials: { kind: 'key' | 'session'; id: string }[]) =>
      (await fixture.ask(teamDirectory.liveCredentials, { credentials }, billing())).credentials.map(
        ({ kind, id }) => `${kind} ${id}`,
      );
    const first = await keyOf();
    await fixture.call(fixture.admin, members.issueKey, { team_id: team.id, user_id: userId, grace_seconds: 60 });
    const second = await keyOf();
    const both = [first, second].map((id) => ({ kind: 'key' as const, id }));
    expect((await live(...both, { kind: 'session', id: first }, { kind: 'key', id: unknownId })).toSorted()).toEqual(
      both.map(({ kind, id }) => `${kind} ${id}`).toSorted(),
    );
    const { credentials } = await fixture.ask(teamDirectory.liveCredentials, { credentials: both }, billing());
    expect(new Map(credentials.map(({ id, is_replaced }) => [id, is_replaced]))).toEqual(
      new Map([
        [first, true],
        [second, false],
      ]),
    );
    await fixture.query(`UPDATE api_key SET expiry_date = now() - interval '1 second' WHERE id = $1`, [first]);
    expect(await live(...both)).toEqual([`key ${second}`]);
    await fixture.call(fixture.admin, members.revokeKey, { team_id: team.id, user_id: userId });
    expect(await live(...both)).toEqual([]);

    const person = await somebody(fixture);
    const sessions = [await logIn(fixture, person), await logIn(fixture, person), await logIn(fixture, person)];
    const held = sessions.map(({ session_id: id }) => ({ kind: 'session' as const, id }));
    expect(await live(...held)).toHaveLength(3);
    await fixture.query(`UPDATE session SET ended_at = now(), end_reason = 'logged_out' WHERE id = $1`, [held[0]?.id]);
    await fixture.query(`UPDATE session SET idle_until = now() - interval '1 second' WHERE id = $1`, [held[1]?.id]);
    expect(await live(...held)).toEqual([`session ${held[2]?.id}`]);
  });

  it('tells which teams require a second factor, and which keys and sessions do for that', async () => {
    const { team, userIds } = await fixture.createTeam('member');
    const [user_id = ''] = userIds;
    const requires = async () =>
      (await fixture.ask(teamDirectory.roles, { members: [{ user_id, team_id: team.id }] }, billing())).members[0]
        ?.requires_second_factor;
    expect(await requires()).toBe(false);
    await fixture.call(fixture.admin, teams.update, { team_id: team.id, require_second_factor: true });
    expect(await requires()).toBe(true);

    const [person, operator] = [await somebody(fixture), await somebody(fixture)];
    const sessions = [await logIn(fixture, person), await logIn(fixture, person), await logIn(fixture, operator)];
    const [without = '', withOne = '', ofOperator = ''] = sessions.map(({ session_id }) => session_id);
    await fixture.query('UPDATE session SET has_second_factor = true WHERE id = $1', [withOne]);
    await fixture.query('UPDATE "user" SET platform_admin = true WHERE id = $1', [operator.userId]);
    const [key] = await fixture.query<{ id: string }>('SELECT id FROM api_key WHERE user_id = $1', [user_id]);
    const held = [without, withOne, ofOperator].map((id) => ({ kind: 'session' as const, id }));
    const asked = { credentials: [...held, { kind: 'key' as const, id: key?.id ?? '' }] };
    const { credentials } = await fixture.ask(teamDirectory.liveCredentials, asked, billing());
    expect(
      new Map(credentials.map((live) => [live.id, [live.has_second_factor, live.makes_keys_without_factor]])),
    ).toEqual(
      new Map([
        [without, [false, true]],
        [withOne, [true, false]],
        [ofOperator, [true, true]],
        [key?.id, [true, false]],
      ]),
    );
  });

  it('is for services alone, not even for the operator', async () => {
    expect((await errorOf(fixture.call(fixture.admin, teamDirectory.liveCredentials, { credentials: [] }))).code).toBe(
      'forbidden',
    );
    expect((await errorOf(fixture.call(fixture.admin, teamDirectory.roles, { members: [] }))).code).toBe('forbidden');
    expect((await errorOf(fixture.call(fixture.admin, teamDirectory.page, {}))).code).toBe('forbidden');
    expect((await errorOf(fixture.call(fixture.admin, teamDirectory.lookUp, { team_ids: [unknownId] }))).code).toBe(
      'forbidden',
    );
  });
});

describe('what is published of a team', () => {
  it('stays below 20 kB for each change, whatever the team holds', async () => {
    const fixture = await TeamsFixture.start();
    try {
      const { team } = await fixture.createTeam();
      await fixture.query(
        `INSERT INTO workspace (id, team_id, name) SELECT gen_random_uuid(), $1, repeat('é', 96) || n FROM generate_series(1, 990) n`,
        [team.id],
      );
      const call = fixture.call.bind(fixture, fixture.admin);
      const made = await call(workspaces.create, { team_id: team.id, name: 'x'.repeat(100) });
      await call(workspaces.rename, { workspace_id: (made as { id: string }).id, name: 'é'.repeat(100) });
      await call(workspaces.delete, { workspace_id: (made as { id: string }).id });
      await call(teams.update, { team_id: team.id, name: 'Renamed', description: 'd'.repeat(1_000) });
      await call(teams.suspend, { team_id: team.id });
      await call(teams.delete, { team_id: team.id });
      const told = await fixture.told(teamUpdated, team.id, (payloads) =>
        payloads.some((each) => each.team?.status === 'deleted'),
      );
      expect(told).toHaveLength(8);
      for (const update of told) expect(Buffer.byteLength(JSON.stringify(update))).toBeLessThan(1_000);
    } finally {
      await fixture.stop();
    }
  });
});
