import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { teamChanged, teamDirectory, teams, workspaces, type TeamChanged } from '@atoll/contracts';
import { systemContext } from '@atoll/rpc';
import { errorOf, TeamsFixture, unknownId } from '../teams-fixture.js';

describe('the directory of teams for other services', () => {
  let fixture: TeamsFixture;
  const billing = () => systemContext('billing');
  beforeAll(async () => {
    fixture = await TeamsFixture.start();
  });
  afterAll(() => fixture.stop());

  async function snapshot(): Promise<TeamChanged[]> {
    const found: TeamChanged[] = [];
    for (;;) {
      const after = found.at(-1)?.team_id;
      const page = await fixture.ask(teamDirectory.snapshot, after === undefined ? {} : { after }, billing());
      if (page.teams.length === 0) return found;
      found.push(...page.teams);
    }
  }

  it('gives every team as it was told last, the deleted ones too', async () => {
    const { team } = await fixture.createTeam();
    await fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'training' });
    const gone = (await fixture.createTeam()).team;
    await fixture.call(fixture.admin, teams.delete, { team_id: gone.id });
    const told = await fixture.told(teamChanged, team.id, (payloads) => payloads.length === 2);
    const ended = await fixture.told(teamChanged, gone.id, (payloads) => payloads.some(({ status }) => status === 'deleted'));
    const known = await snapshot();
    expect(known.find(({ team_id }) => team_id === team.id)).toEqual(told.at(-1));
    expect(known.find(({ team_id }) => team_id === gone.id)).toMatchObject({ status: 'deleted', revision: ended.at(-1)?.revision });
    expect(new Set(known.map(({ team_id }) => team_id)).size).toBe(known.length);
  });

  it('goes on after the hundredth team', async () => {
    await fixture.query(`INSERT INTO team (id, name, description, policy_id)
      SELECT gen_random_uuid(), 'many', '', (SELECT id FROM image_policy WHERE is_default) FROM generate_series(1, 250)`);
    expect((await snapshot()).filter(({ name }) => name === 'many')).toHaveLength(250);
  });

  it('finds one by its id or by that of a workspace', async () => {
    const { team } = await fixture.createTeam();
    const workspace_id = team.workspaces[0]!.id;
    const found = await fixture.ask(teamDirectory.find, { team_id: team.id }, billing());
    expect(found).toMatchObject({ team_id: team.id, workspaces: team.workspaces });
    expect(await fixture.ask(teamDirectory.find, { workspace_id }, billing())).toEqual(found);
    for (const asked of [{ team_id: unknownId }, { workspace_id: unknownId }]) {
      expect((await errorOf(fixture.ask(teamDirectory.find, asked, billing()))).code).toBe('not_found');
    }
    for (const asked of [{}, { team_id: team.id, workspace_id }]) {
      expect((await errorOf(fixture.ask(teamDirectory.find, asked, billing()))).code).toBe('invalid_input');
    }
  });

  it('is for services alone, not even for the operator', async () => {
    expect((await errorOf(fixture.call(fixture.admin, teamDirectory.snapshot, {}))).code).toBe('forbidden');
    expect((await errorOf(fixture.call(fixture.admin, teamDirectory.find, { team_id: unknownId }))).code).toBe('forbidden');
  });
});
