import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { members, teamDirectory, teams } from '@atoll/contracts/teams';
import { Statements } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { errorOf, TeamsFixture, type MadeTeam } from '../teams-fixture.js';
import { DeletedTeams } from './deleted-teams.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

/** As after a start. */
let deletedTeams: DeletedTeams;
beforeEach(() => {
  deletedTeams = new DeletedTeams(fixture.get(Statements));
});

const countOf = async (table: 'membership' | 'api_key' | 'workspace', teamId: string): Promise<number> =>
  (await fixture.query(`SELECT FROM ${table} WHERE team_id = $1`, [teamId])).length;
const countsOf = (teamId: string) =>
  Promise.all([countOf('membership', teamId), countOf('api_key', teamId), countOf('workspace', teamId)]);

/** Deletes the team, so many hours ago. */
async function deleteTeam({ team: { id } }: MadeTeam, hours: number): Promise<void> {
  await fixture.call(fixture.admin, teams.delete, { team_id: id });
  await fixture.query('UPDATE team SET deleted_at = deleted_at - make_interval(hours => $2) WHERE id = $1', [
    id,
    hours,
  ]);
}

/** Removes all, and resolves with the number of batches. */
async function removeAll(): Promise<number> {
  for (let batches = 1; ; batches += 1) if (!(await deletedTeams.removeSome())) return batches;
}

describe('of a deleted team', () => {
  it('go members, invitations and keys; it stays with its workspaces, and other services still learn of it', async () => {
    const [made, living, fresh] = [
      await fixture.createTeam('team_owner', 'member'),
      await fixture.createTeam('team_owner', 'member'),
      await fixture.createTeam('team_owner', 'member'),
    ];
    await fixture.call(made.keys[0] ?? '', members.add, {
      team_id: made.team.id,
      email: 'eve@example.com',
      name: 'Eve',
      role: 'member',
    });
    await deleteTeam(made, 2);
    await deleteTeam(fresh, 0);
    await removeAll();
    expect(await countsOf(made.team.id)).toEqual([0, 0, 1]);
    expect(await countsOf(living.team.id)).toEqual([2, 2, 1]);
    // Of one that is being deleted meanwhile nothing is passed over.
    expect(await countsOf(fresh.team.id)).toEqual([2, 2, 1]);
    const { updates } = await fixture.ask(teamDirectory.lookUp, { team_ids: [made.team.id] }, systemContext('billing'));
    expect(updates).toMatchObject([{ team: { status: 'deleted' } }]);
    expect((await errorOf(fixture.call(made.keys[0] ?? '', teams.list, {}))).code).toBe('unauthenticated');
    await fixture.query(`UPDATE team SET deleted_at = deleted_at - interval '90 minutes' WHERE id = $1`, [
      fresh.team.id,
    ]);
    await removeAll();
    expect(await countsOf(fresh.team.id)).toEqual([0, 0, 1]);
  });

  it('go a thousand rows at a time', async () => {
    const made = await fixture.createTeam();
    await fixture.query(
      `WITH made AS (INSERT INTO "user" (id, email, name) SELECT gen_random_uuid(), n || '@many.example', 'One' FROM generate_series(1, 1500) n RETURNING id),
         joined AS (INSERT INTO membership (id, team_id, user_id, role) SELECT gen_random_uuid(), $1, id, 'member' FROM made RETURNING user_id)
       INSERT INTO api_key (id, user_id, team_id, digest, mask)
       SELECT gen_random_uuid(), user_id, $1, sha256((user_id::text || n)::bytea), '' FROM joined, generate_series(1, 2) n`,
      [made.team.id],
    );
    await deleteTeam(made, 2);
    const left: number[][] = [];
    do left.push(await countsOf(made.team.id));
    while (await deletedTeams.removeSome());
    left.push(await countsOf(made.team.id));
    expect(left).toEqual([
      [1501, 3001, 1],
      [1501, 2001, 1],
      [1501, 1001, 1],
      [1501, 1, 1],
      [501, 0, 1],
      [0, 0, 1],
    ]);
  });

  it('nothing is read again once it is done, however many teams were deleted', async () => {
    await fixture.query(
      `INSERT INTO team (id, name, description, policy_id, deleted_at)
       SELECT gen_random_uuid(), 'Gone', '', p.id, now() - interval '1 day' FROM image_policy p, generate_series(1, 2000) WHERE p.is_default`,
    );
    await fixture.query('ANALYZE team, membership, api_key');
    const last = await fixture.createTeam();
    await deleteTeam(last, 2);
    expect(await removeAll()).toBeGreaterThan(20);
    expect(await countsOf(last.team.id)).toEqual([0, 0, 1]);
    const sent = await allStatementsDuring(() => deletedTeams.removeSome());
    const looks = sent.filter(({ text }) => text.includes('deleted_at'));
    expect(looks).toHaveLength(1);
    for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(200);
  });
});
