import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type CallContext, type Operation } from '@atoll/contracts';
import { members, teamBatches, teams, users, workspaces } from '@atoll/contracts/teams';
import { DataSource } from 'typeorm';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { TeamsSettings } from '../teams-settings.js';
import { newAdminKey } from '../users/admin-key.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

interface Place {
  team_id: string;
  user_id: string;
  workspace_id: string;
}

type Asked = [operation: Operation, input: (place: Place) => object];

const writes: Record<string, Asked> = {
  'adds a member': [
    members.add,
    ({ team_id }) => ({ team_id, email: 'accomplice@example.com', name: 'x', role: 'member' }),
  ],
  'adds members': [
    teamBatches.addMembers,
    ({ team_id }) => ({ team_id, members: [{ email: 'accomplice@example.com', name: 'x', role: 'member' }] }),
  ],
  'changes a role': [members.changeRole, ({ team_id, user_id }) => ({ team_id, user_id, role: 'team_admin' })],
  'removes a member': [members.remove, ({ team_id, user_id }) => ({ team_id, user_id })],
  'issues a key': [members.issueKey, ({ team_id, user_id }) => ({ team_id, user_id })],
  'revokes a key': [members.revokeKey, ({ team_id, user_id }) => ({ team_id, user_id })],
  'changes the team': [teams.update, ({ team_id }) => ({ team_id, name: 'Taken over' })],
  'makes a workspace': [workspaces.create, ({ team_id }) => ({ team_id, name: 'x' })],
  'renames a workspace': [workspaces.rename, ({ workspace_id }) => ({ workspace_id, name: 'x' })],
  'deletes a workspace': [workspaces.delete, ({ workspace_id }) => ({ workspace_id })],
  'deletes the team': [teams.delete, ({ team_id }) => ({ team_id })],
  'ends the team': [teamBatches.end, ({ team_id }) => ({ team_id })],
};

/** A team with an owner who is about to lose that, and what a gateway still says of them afterwards. */
async function staleOwner(): Promise<{ place: Place; ownerId: string; context: CallContext }> {
  const { team, keys, userIds } = await fixture.createTeam('team_owner', 'member', 'team_owner');
  const [ownerId = '', user_id = ''] = userIds;
  const team_id = team.id;
  const { id: workspace_id } = await fixture.call(fixture.admin, workspaces.create, { team_id, name: 'lab' });
  const context = await fixture.contextOf(keys[0] ?? '', members.add, {});
  return { place: { team_id, user_id, workspace_id }, ownerId, context };
}

async function codesAfter(lose: (place: Place, ownerId: string) => Promise<unknown>): Promise<Record<string, string>> {
  const { place, ownerId, context } = await staleOwner();
  await lose(place, ownerId);
  const codes: Record<string, string> = {};
  for (const [name, [operation, input]] of Object.entries(writes)) {
    codes[name] = (await errorOf(fixture.ask(operation, input(place), context))).code;
  }
  return codes;
}

const each = (code: string) => Object.fromEntries(Object.keys(writes).map((name) => [name, code]));

describe('a caller of whom a gateway knows what is true no more', () => {
  it('finds nothing to write once removed from the team', async () => {
    expect(
      await codesAfter(({ team_id }, user_id) => fixture.call(fixture.admin, members.remove, { team_id, user_id })),
    ).toEqual(each('not_found'));
  });

  it('finds nothing to write once removed, whatever they are in another team', async () => {
    const other = await fixture.createTeam();
    const lose = async ({ team_id }: Place, user_id: string) => {
      const [user] = await fixture.query<{ email: string }>('SELECT email FROM "user" WHERE id = $1', [user_id]);
      await fixture.call(fixture.admin, members.add, {
        team_id: other.team.id,
        email: user?.email ?? '',
        name: 'x',
        role: 'team_owner',
      });
      await fixture.call(fixture.admin, members.remove, { team_id, user_id });
    };
    expect(await codesAfter(lose)).toEqual(each('not_found'));
  });

  it('may write what the role of now may', async () => {
    const demote =
      (role: 'viewer' | 'team_admin') =>
      ({ team_id }: Place, user_id: string) =>
        fixture.call(fixture.admin, members.changeRole, { team_id, user_id, role });
    expect(await codesAfter(demote('viewer'))).toEqual(each('forbidden'));
    const { place, ownerId, context } = await staleOwner();
    await demote('team_admin')(place, ownerId);
    const ofAnOwner: Promise<unknown>[] = [
      fixture.ask(
        members.changeRole,
        { team_id: place.team_id, user_id: place.user_id, role: 'team_owner' as const },
        context,
      ),
      fixture.ask(
        members.add,
        { team_id: place.team_id, email: 'accomplice@example.com', name: 'x', role: 'team_owner' as const },
        context,
      ),
      fixture.ask(teams.delete, { team_id: place.team_id }, context),
    ];
    for (const { code } of await Promise.all(ofAnOwner.map(errorOf))) expect(code).toBe('forbidden');
    expect(await fixture.ask(teams.update, { team_id: place.team_id, name: 'By an admin' }, context)).toMatchObject({
      name: 'By an admin',
    });
  });

  it('writes nothing with a key that was revoked', async () => {
    expect(
      await codesAfter(({ team_id }, user_id) => fixture.call(fixture.admin, members.revokeKey, { team_id, user_id })),
    ).toEqual(each('unauthenticated'));
  });

  it('gets no successor of a revoked key, to the team or of the user as a whole', async () => {
    const { place, ownerId, context } = await staleOwner();
    await fixture.call(fixture.admin, members.revokeKey, { team_id: place.team_id, user_id: ownerId });
    const successor = fixture.ask(members.issueKey, { team_id: place.team_id, user_id: ownerId }, context);
    expect((await errorOf(successor)).code).toBe('unauthenticated');
    const whole = await fixture.wholeKeyOf(ownerId);
    const stale = await fixture.contextOf(whole, users.issueKey, {});
    await fixture.call(whole, users.revokeKey, {});
    expect((await errorOf(fixture.ask(users.issueKey, {}, stale))).code).toBe('unauthenticated');
  });

  // The last one: the operator's key of this file ends here.
  it('writes nothing with a key of the operator that was lost and made anew', async () => {
    const newKey = () => newAdminKey(fixture.get(DataSource), fixture.get(TeamsSettings));
    const { team, userIds } = await fixture.createTeam('team_owner');
    const place = { team_id: team.id, user_id: userIds[0] ?? '', workspace_id: team.workspaces[0]?.id ?? '' };
    const lost = await newKey();
    const context = await fixture.contextOf(lost, members.add, {});
    await newKey();
    for (const [operation, input] of Object.values(writes)) {
      expect((await errorOf(fixture.ask(operation, input(place), context))).code).toBe('unauthenticated');
    }
    expect((await errorOf(fixture.ask(teams.create, { name: 'By a lost key' }, context))).code).toBe('unauthenticated');
  });
});
