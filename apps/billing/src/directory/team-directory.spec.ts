import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { teamChanged, type TeamChanged } from '@atoll/contracts';
import { newId } from '@atoll/database';
import { aTeam, BillingFixture, errorOf } from '../billing-fixture.js';
import { TeamDirectory } from './team-directory.js';

let fixture: BillingFixture;
let directory: TeamDirectory;
async function start(teams: TeamChanged[] = []): Promise<void> {
  fixture = await BillingFixture.start({ teams });
  directory = fixture.app.get(TeamDirectory, { strict: false });
}
beforeEach(() => start());
afterEach(() => fixture.stop());

const workspace = (name: string) => ({ id: newId(), name });

describe('what billing knows of teams', () => {
  it('is what was told last, in whatever order it came', async () => {
    const [kept, added, dropped] = [workspace('kept'), workspace('added'), workspace('dropped')];
    const first = { ...aTeam([kept, dropped]), name: 'Old' };
    const later = { ...first, revision: 3, name: 'New', workspaces: [{ ...kept, name: 'renamed' }, added] };
    for (const told of [later, first, { ...first, revision: 2 }, later]) await fixture.tell(teamChanged, told);
    expect(await directory.team(first.team_id)).toMatchObject({ id: first.team_id, name: 'New' });
    expect(await directory.workspace(kept.id)).toMatchObject({ name: 'renamed', teamId: first.team_id });
    expect(await directory.workspace(added.id)).toMatchObject({ name: 'added' });
    expect((await errorOf(directory.workspace(dropped.id))).code).toBe('not_found');
  });

  it('keeps a workspace and a team that are gone, since their costs stay', async () => {
    const gone = workspace('gone');
    const team = aTeam([gone]);
    await fixture.tell(teamChanged, team);
    await fixture.tell(teamChanged, { ...team, revision: 2, status: 'deleted', workspaces: [] });
    expect(await directory.workspace(gone.id)).toMatchObject({ name: 'gone', teamId: team.team_id });
    expect(await directory.team(team.team_id)).toMatchObject({ name: 'Research' });
    expect(await fixture.query('SELECT is_deleted FROM workspace WHERE id = $1', [gone.id])).toEqual([{ is_deleted: true }]);
  });

  it('is asked of the owner once where nothing was told, and then known', async () => {
    const team = aTeam([workspace('a')]);
    fixture.owner.teams.push(team);
    const finds = () => fixture.owner.asked.filter((subject) => subject.endsWith('find')).length;
    expect(await directory.workspace(team.workspaces[0]!.id)).toMatchObject({ teamId: team.team_id });
    expect(await directory.team(team.team_id)).toMatchObject({ name: 'Research' });
    expect(finds()).toBe(1);
    expect((await errorOf(directory.team(newId()))).toWire()).toMatchObject({ code: 'not_found', message: 'No such team.' });
    expect((await errorOf(directory.workspace(newId()))).message).toBe('No such workspace.');
  });

  it('is unavailable, not unknown, while the owner is away', async () => {
    fixture.owner.leave();
    expect((await errorOf(directory.team(newId()))).code).toBe('unavailable');
  });

  it('tells strangers from the workspaces of a team', async () => {
    const [known, asked, other] = [aTeam(), aTeam(), aTeam()];
    await fixture.tell(teamChanged, known);
    await fixture.tell(teamChanged, other);
    fixture.owner.teams.push(known, asked, other);
    const pair = (team: TeamChanged, of: TeamChanged) => ({ teamId: team.team_id, workspaceId: of.workspaces[0]!.id });
    const strangers = await directory.strangers([pair(known, known), pair(asked, asked), pair(known, other), pair(asked, known)]);
    expect([...strangers].sort()).toEqual(
      [`${known.team_id} ${other.workspaces[0]!.id}`, `${asked.team_id} ${known.workspaces[0]!.id}`].sort(),
    );
  });
});

describe('a billing service that starts beside older teams', () => {
  const known = async () => (await fixture.query<{ id: string }>('SELECT id FROM team WHERE revision > 0 ORDER BY id')).map(({ id }) => id);
  const completed = async () => (await fixture.query('SELECT FROM team_snapshot')).length === 1;
  async function until(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await delay(10);
  }

  it('fetches them all, page by page, and never again', async () => {
    const teams = Array.from({ length: 5 }, () => aTeam());
    await fixture.stop();
    await start(teams);
    await until(completed);
    expect(await known()).toEqual(teams.map(({ team_id }) => team_id).sort());
    expect(fixture.owner.asked.filter((subject) => subject.endsWith('snapshot'))).toHaveLength(4);
  });

  it('starts without their owner, and fetches them when it comes', async () => {
    const team = aTeam();
    await until(completed);
    await fixture.query('DELETE FROM team_snapshot');
    const { TeamSnapshot } = await import('./team-snapshot.js');
    const snapshot = fixture.app.get(TeamSnapshot, { strict: false });
    fixture.owner.leave();
    fixture.owner.teams.push(team);
    snapshot.onApplicationBootstrap();
    expect(await known()).toEqual([]);
    fixture.owner.comeBack();
    await until(completed);
    expect(await known()).toEqual([team.team_id]);
  });
});
