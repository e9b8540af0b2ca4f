import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { teamBatches, teams, type NewMember } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { statementsOf } from '@atoll/testing';
import { TeamsFixture } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const people = (count: number): NewMember[] =>
  Array.from({ length: count }, () => ({ email: `${newId()}@example.com`, name: 'x', role: 'member' }));

it('a team of a hundred members is created by as many statements as one of two, and tells of each and invites each', async () => {
  const create = (count: number) => fixture.call(fixture.admin, teams.create, { name: 'x', members: people(count) });
  const few = await statementsOf(() => create(2));
  const many = await statementsOf(async () => {
    const created = await create(100);
    const links = created.members.flatMap(({ invitation }) => invitation?.url ?? []);
    expect(new Set(links).size).toBe(100);
    const told = await fixture.query<{ users: number }>(
      `SELECT count(DISTINCT payload->>'user_id')::int AS users FROM (SELECT event_name, payload FROM outbox UNION ALL SELECT event_name, payload FROM outbox_published) event
       WHERE event_name = 'teams.membership_changed' AND payload->>'team_id' = $1`,
      [created.id],
    );
    expect(told).toEqual([{ users: 101 }]);
  });
  expect(many.length).toBeLessThanOrEqual(few.length + 1);
});

it('fifty members are added with one revision of their team', async () => {
  const { team } = await fixture.createTeam();
  const added = await fixture.call(fixture.admin, teamBatches.addMembers, { team_id: team.id, members: people(50) });
  expect(new Set(added.members.map(({ invitation }) => invitation?.url)).size).toBe(50);
  expect(await fixture.query('SELECT revision FROM team WHERE id = $1', [team.id])).toEqual([{ revision: 2 }]);
});
