import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { teamRoles } from '@atoll/contracts';
import { members, type TeamMember } from '@atoll/contracts/teams';
import { isAppError } from '@atoll/errors';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { TeamsFixture } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
  fixture.asManyReplicas();
});
afterAll(() => fixture.stop());

const membersOf = async (team_id: string): Promise<TeamMember[]> =>
  (await fixture.call(fixture.admin, members.list, { team_id, limit: 100 })).data;
const ownersOf = async (team_id: string): Promise<TeamMember[]> =>
  (await membersOf(team_id)).filter(({ role }) => role === 'team_owner');

function codesOf(calls: PromiseSettledResult<unknown>[]): string[] {
  return calls
    .map((call) =>
      call.status === 'fulfilled' ? 'done' : isAppError(call.reason) ? call.reason.code : String(call.reason),
    )
    .toSorted();
}

describe('at once', () => {
  it('the last two owners leave: one stays', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { team } = await fixture.createTeam('team_owner', 'team_owner');
      const leave = ({ user_id }: TeamMember) =>
        fixture.call(fixture.admin, members.remove, { team_id: team.id, user_id });
      expect(codesOf(await Promise.allSettled(team.members.map(leave)))).toEqual(['conflict', 'done']);
      expect(await ownersOf(team.id)).toHaveLength(1);
    }
  });

  it('one person is added five times: one membership, with one key', async () => {
    const { team } = await fixture.createTeam();
    const person = { team_id: team.id, email: 'everywhere@example.com', name: 'Everywhere', role: 'member' as const };
    const calls = await Promise.allSettled(
      Array.from({ length: 5 }, () => fixture.call(fixture.admin, members.add, person)),
    );
    expect(codesOf(calls)).toEqual(['conflict', 'conflict', 'conflict', 'conflict', 'done']);
    expect(
      await fixture.query('SELECT FROM api_key k JOIN "user" u ON u.id = k.user_id WHERE u.email = $1', [person.email]),
    ).toHaveLength(1);
  });

  it('the same new people are added to many teams, in any order: each is one user', async () => {
    const made = await Promise.all(Array.from({ length: 4 }, () => fixture.createTeam()));
    const emails = ['one', 'two', 'three'].map((name) => `${name}@crowd.example`);
    const add = (team_id: string, email: string) =>
      fixture.call(fixture.admin, members.add, { team_id, email, name: 'x', role: 'viewer' });
    await Promise.all(
      made.flatMap(({ team }, index) => (index % 2 ? emails : emails.toReversed()).map((email) => add(team.id, email))),
    );
    expect(await fixture.query(`SELECT FROM "user" WHERE email LIKE '%@crowd.example'`)).toHaveLength(3);
  });
});

describe('whatever is done to the members of a team', () => {
  it('law: it has an owner, and each of its changes is a revision of its own', async () => {
    const command = fc.record({
      action: fc.constantFrom('remove', 'changeRole', 'add'),
      who: fc.nat({ max: 5 }),
      role: fc.constantFrom(...teamRoles),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 8 }), fc.boolean(), async (commands, isAtOnce) => {
        const { team } = await fixture.createTeam('team_owner', 'team_admin', 'member');
        const people = team.members;
        const run = async ({ action, who, role }: (typeof commands)[number]): Promise<unknown> => {
          const { user_id, email } = people[who % people.length] as TeamMember;
          if (action === 'remove') return fixture.call(fixture.admin, members.remove, { team_id: team.id, user_id });
          if (action === 'add')
            return fixture.call(fixture.admin, members.add, { team_id: team.id, email, name: 'x', role });
          return fixture.call(fixture.admin, members.changeRole, { team_id: team.id, user_id, role });
        };
        const codes: string[] = [];
        if (isAtOnce) codes.push(...codesOf(await Promise.allSettled(commands.map(run))));
        else for (const one of commands) codes.push(...codesOf(await Promise.allSettled([run(one)])));
        expect(codes.filter((code) => !['done', 'conflict', 'not_found'].includes(code))).toEqual([]);
        expect((await ownersOf(team.id)).length).toBeGreaterThan(0);
        const [row] = await fixture.query<{ revision: number }>('SELECT revision FROM team WHERE id = $1', [team.id]);
        expect((row?.revision ?? 0) - 1).toBeLessThanOrEqual(codes.filter((code) => code === 'done').length);
      }),
      runs(25),
    );
  });
});
