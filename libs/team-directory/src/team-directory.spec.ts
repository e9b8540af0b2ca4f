import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { teamChanged, teamUpdated, type TeamChanged } from '@atoll/contracts/teams';
import { newId, Transactions } from '@atoll/database';
import { aTeam } from '@atoll/testing';
import { applyUpdate, updateOf } from './apply-update.js';
import { DirectoryFixture, errorOf } from './directory-fixture.js';
import { TeamDirectory } from './team-directory.js';
import { TeamSnapshot } from './team-snapshot.js';

let fixture: DirectoryFixture;
let directory: TeamDirectory;
async function start(teams: TeamChanged[] = [], isOwnerAway = false): Promise<void> {
  fixture = await DirectoryFixture.start({ teams, isOwnerAway });
  directory = fixture.app.get(TeamDirectory, { strict: false });
}

/** Until all teams there were at the start have been fetched. */
async function completed(): Promise<void> {
  while ((await fixture.query('SELECT FROM team_snapshot')).length === 0) await delay(10);
}

const workspace = (name: string) => ({ id: newId(), name });
const askedFor = (operation: string) => fixture.owner.asked.filter((subject) => subject.endsWith(operation)).length;
const standing = { name: 'Research', is_suspended: false, status: 'active' as const, default_workspace_id: null };

describe('what a service knows of teams', () => {
  beforeAll(async () => {
    await start();
    await completed();
  });
  beforeEach(() => {
    fixture.owner.teams.length = fixture.owner.asked.length = 0;
  });
  afterAll(() => fixture.stop());

  it('is what was told last, in whatever order it came', async () => {
    const [kept, added, dropped] = [workspace('kept'), workspace('added'), workspace('dropped')];
    const first = { ...aTeam([kept, dropped]), name: 'Old' };
    const later = { ...first, revision: 3, name: 'New', workspaces: [{ ...kept, name: 'renamed' }, added] };
    for (const told of [later, first, { ...first, revision: 2 }, later]) await fixture.tell(teamChanged, told);
    expect(await directory.team(first.team_id)).toMatchObject({ id: first.team_id, name: 'New' });
    expect(await directory.workspace(kept.id)).toMatchObject({ name: 'renamed', teamId: first.team_id });
    expect(await directory.workspace(added.id)).toMatchObject({ name: 'added' });
    expect(await directory.workspace(dropped.id)).toMatchObject({ name: 'dropped', teamId: first.team_id });
  });

  it('is the same where it is told of one team by many at once', async () => {
    const team = aTeam();
    const tellings = Array.from({ length: 12 }, (_, at) => ({
      ...team,
      revision: at + 1,
      name: `name ${at}`,
      workspaces: [workspace(`${at}`)],
    }));
    const transactions = fixture.app.get(Transactions, { strict: false });
    const mixed = tellings.toSorted((one, other) => ((one.revision * 5) % 13) - ((other.revision * 5) % 13));
    await Promise.all(mixed.map((telling) => transactions.run((manager) => applyUpdate(manager, updateOf(telling)))));
    expect(await directory.team(team.team_id)).toMatchObject({ name: 'name 11' });
    const known = await fixture.query('SELECT name, is_deleted FROM workspace WHERE team_id = $1 ORDER BY name::int', [
      team.team_id,
    ]);
    expect(known).toEqual(tellings.map((_, at) => ({ name: `${at}`, is_deleted: at < 11 })));
  });

  it('is what changed, without a word about the rest', async () => {
    const [first, second] = [workspace('first'), workspace('second')];
    const team = aTeam([first]);
    const { team_id } = team;
    const update = { team_id, workspaces: [], is_complete: false };
    await fixture.tell(teamUpdated, { ...updateOf(team), team: { ...standing, default_workspace_id: first.id } });
    await fixture.tell(teamUpdated, { ...update, revision: 2, workspaces: [{ ...second, is_deleted: false }] });
    await fixture.tell(teamUpdated, {
      ...update,
      revision: 3,
      team: { ...standing, name: 'Renamed', default_workspace_id: first.id },
    });
    await fixture.tell(teamUpdated, {
      ...update,
      revision: 4,
      workspaces: [{ ...first, name: 'lab', is_deleted: false }],
    });
    await fixture.tell(teamUpdated, { ...update, revision: 5, workspaces: [{ ...second, is_deleted: true }] });
    expect(await directory.team(team_id)).toMatchObject({ name: 'Renamed', defaultWorkspaceId: first.id });
    expect(await directory.workspace(first.id)).toMatchObject({ name: 'lab', isDeleted: false });
    expect(await directory.workspace(second.id)).toMatchObject({ name: 'second', isDeleted: true });
  });

  it('keeps the number that facts gave a team before it was told of', async () => {
    const team = aTeam();
    const [row] = await fixture.query<{ no: number }>('INSERT INTO team (id) VALUES ($1) RETURNING no', [team.team_id]);
    expect((await errorOf(directory.team(team.team_id))).code).toBe('not_found');
    await fixture.tell(teamChanged, team);
    expect(await directory.team(team.team_id)).toMatchObject({ no: row?.no, id: team.team_id, name: 'Research' });
  });

  it('says how the team stands, and which workspace is its first', async () => {
    const team = aTeam([workspace('default'), workspace('later')]);
    await fixture.tell(teamChanged, { ...team, is_suspended: true, status: 'deleting' });
    expect(await directory.team(team.team_id)).toMatchObject({
      isSuspended: true,
      status: 'deleting',
      defaultWorkspaceId: team.workspaces[0]!.id,
    });
    const [first] = team.workspaces;
    await fixture.tell(teamChanged, { ...team, revision: 2, workspaces: [first!, workspace('newest')] });
    expect(await directory.team(team.team_id)).toMatchObject({
      isSuspended: false,
      status: 'active',
      defaultWorkspaceId: first!.id,
    });
  });

  it('is nothing yet of a team that only facts have named', async () => {
    const id = newId();
    await fixture.query('INSERT INTO team (id) VALUES ($1)', [id]);
    expect(await directory.knownTeams([id])).toEqual(new Set());
    const bare = await fixture.query(
      'SELECT name, is_suspended, status, default_workspace_id FROM team WHERE id = $1',
      [id],
    );
    expect(bare).toEqual([{ name: null, is_suspended: false, status: 'active', default_workspace_id: null }]);
  });

  it('keeps a workspace and a team that are deleted, since their costs stay; only who asks for deleted teams finds the team', async () => {
    const gone = workspace('gone');
    const team = aTeam([gone]);
    await fixture.tell(teamChanged, team);
    await fixture.tell(teamChanged, { ...team, revision: 2, status: 'deleted', workspaces: [] });
    expect(await directory.workspace(gone.id)).toMatchObject({ name: 'gone', teamId: team.team_id });
    expect(await directory.teamEvenIfDeleted(team.team_id)).toMatchObject({ name: 'Research', status: 'deleted' });
    expect(await errorOf(directory.team(team.team_id))).toMatchObject({ code: 'not_found', message: 'No such team.' });
    expect(await fixture.query('SELECT is_deleted FROM workspace WHERE id = $1', [gone.id])).toEqual([
      { is_deleted: true },
    ]);
  });

  it('is asked of the owner once where nothing was told, and then known', async () => {
    const team = aTeam([workspace('a')]);
    fixture.owner.teams.push(team);
    expect(await directory.workspace(team.workspaces[0]!.id)).toMatchObject({ teamId: team.team_id });
    expect(await directory.team(team.team_id)).toMatchObject({ name: 'Research' });
    expect(askedFor('lookUp')).toBe(1);
    expect((await errorOf(directory.team(newId()))).toWire()).toMatchObject({
      code: 'not_found',
      message: 'No such team.',
    });
    expect((await errorOf(directory.workspace(newId()))).message).toBe('No such workspace.');
  });

  it('is looked for in the same places where a workspace is of another team and where it does not exist', async () => {
    const [own, foreign] = [aTeam(), aTeam()];
    await fixture.tell(teamChanged, own);
    await fixture.tell(teamChanged, foreign);
    fixture.owner.teams.push(own, foreign);
    for (const id of [foreign.workspaces[0]!.id, newId()]) {
      const before = askedFor('lookUp');
      expect((await errorOf(directory.workspace(id, [own.team_id]))).toWire()).toMatchObject({
        message: 'No such workspace.',
      });
      expect(askedFor('lookUp')).toBe(before + 1);
    }
    const before = askedFor('lookUp');
    expect(await directory.workspace(own.workspaces[0]!.id, [foreign.team_id, own.team_id])).toMatchObject({
      teamId: own.team_id,
    });
    expect(askedFor('lookUp')).toBe(before);
  });

  it('fetches nothing of a team that the caller is not in, also where the owner knows it', async () => {
    const [own, foreign] = [aTeam(), aTeam()];
    fixture.owner.teams.push(own, foreign);
    await errorOf(directory.workspace(foreign.workspaces[0]!.id, [own.team_id]));
    expect(await directory.knownTeams([foreign.team_id])).toEqual(new Set());
    await directory.workspace(foreign.workspaces[0]!.id, [foreign.team_id]);
    expect(await directory.knownTeams([foreign.team_id])).toEqual(new Set([foreign.team_id]));
  });

  it('is asked of the owner once for a thousand pairs', async () => {
    const teams = Array.from({ length: 20 }, () => aTeam());
    fixture.owner.teams.push(...teams);
    const pairs = teams.map((team) => ({ teamId: team.team_id, workspaceId: team.workspaces[0]!.id }));
    expect(await directory.strangers([...pairs, ...pairs])).toEqual(new Set());
    expect(askedFor('lookUp')).toBe(1);
  });

  it('is unavailable, not unknown, while the owner is away', async () => {
    fixture.owner.leave();
    const refused = await errorOf(directory.team(newId())).finally(() => fixture.owner.comeBack());
    expect(refused.code).toBe('unavailable');
  });

  it('tells strangers from the workspaces of a team', async () => {
    const [known, asked, other] = [aTeam(), aTeam(), aTeam()];
    await fixture.tell(teamChanged, known);
    await fixture.tell(teamChanged, other);
    fixture.owner.teams.push(known, asked, other);
    const pair = (team: TeamChanged, of: TeamChanged) => ({ teamId: team.team_id, workspaceId: of.workspaces[0]!.id });
    const strangers = await directory.strangers([
      pair(known, known),
      pair(asked, asked),
      pair(known, other),
      pair(asked, known),
    ]);
    expect([...strangers].sort()).toEqual(
      [`${known.team_id} ${other.workspaces[0]!.id}`, `${asked.team_id} ${known.workspaces[0]!.id}`].sort(),
    );
  });
});

describe('a service that starts beside older teams', () => {
  afterEach(() => fixture.stop());
  const known = async () =>
    (await fixture.query<{ id: string }>('SELECT id FROM team WHERE revision > 0 ORDER BY id')).map(({ id }) => id);

  it('fetches them all, page by page, and never again', async () => {
    const teams = Array.from({ length: 5 }, () => aTeam());
    await start(teams);
    await completed();
    expect(await known()).toEqual(teams.map(({ team_id }) => team_id).sort());
    expect(askedFor('page')).toBe(3);
    const snapshot = fixture.app.get(TeamSnapshot, { strict: false });
    snapshot.onApplicationBootstrap();
    await snapshot.onModuleDestroy();
    expect(askedFor('page')).toBe(3);
  });

  it('fetches a team whose workspaces are several pages, whole', async () => {
    const large = aTeam(Array.from({ length: 8 }, (_, at) => workspace(`w${at}`)));
    await start([aTeam(), large, aTeam()]);
    await completed();
    const found = await fixture.query<{ id: string }>(
      'SELECT id FROM workspace WHERE team_id = $1 AND NOT is_deleted',
      [large.team_id],
    );
    expect(found.map(({ id }) => id).toSorted()).toEqual(large.workspaces.map(({ id }) => id).toSorted());
  });

  it('starts without their owner, and fetches them when it comes', async () => {
    const team = aTeam();
    await start([team], true);
    expect(await known()).toEqual([]);
    fixture.owner.comeBack();
    await completed();
    expect(await known()).toEqual([team.team_id]);
  });

  it('takes nothing back that it was told meanwhile', async () => {
    const team = aTeam();
    await start([team], true);
    await fixture.tell(teamChanged, { ...team, revision: 2, name: 'Newer' });
    fixture.owner.comeBack();
    await completed();
    expect(await directory.team(team.team_id)).toMatchObject({ name: 'Newer' });
  });

  it('stops while it waits for their owner', async () => {
    await start([aTeam()], true);
    const snapshot = fixture.app.get(TeamSnapshot, { strict: false });
    await snapshot.onModuleDestroy();
    fixture.owner.comeBack();
    expect(await known()).toEqual([]);
    expect(askedFor('page')).toBe(0);
  });
});
