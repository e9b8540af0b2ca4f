import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { teamRoles, type Operation, type TeamRole } from '@atoll/contracts';
import { imagePolicies, invitations, members, teamBatches, teams, workspaces } from '@atoll/contracts/teams';
import { isAppError } from '@atoll/errors';
import { contextOf, gateway, home } from './sessions/session-fixture.js';
import { SessionsService } from './sessions/session.service.js';
import { errorOf, TeamsFixture, unknownId, type MadeTeam } from './teams-fixture.js';

/** The ids that an operation is asked about. */
interface Place {
  team_id: string;
  user_id: string;
  workspace_id: string;
  invitation_id: string;
}

type Asked = [operation: Operation, input: (place: Place) => object];

/** In an order in which each can be done after the ones before. */
const ofTheTeam: Record<string, Asked> = {
  'read the team': [teams.get, ({ team_id }) => ({ team_id })],
  'list members': [members.list, ({ team_id }) => ({ team_id })],
  'find members': [teamBatches.findMembers, ({ team_id }) => ({ team_id, page: 0, limit: 10 })],
  'list workspaces': [workspaces.list, ({ team_id }) => ({ team_id })],
  'list images': [imagePolicies.teamImages, ({ team_id }) => ({ team_id })],
  'check an image': [imagePolicies.check, ({ team_id }) => ({ team_id, image: 'nginx' })],
  'list invitations': [invitations.list, ({ team_id }) => ({ team_id })],
  'send an invitation again': [invitations.resend, ({ team_id, invitation_id }) => ({ team_id, invitation_id })],
  'revoke an invitation': [invitations.revoke, ({ team_id, invitation_id }) => ({ team_id, invitation_id })],
  'change the team': [teams.update, ({ team_id }) => ({ team_id, name: 'x' })],
  'add a member': [members.add, ({ team_id }) => ({ team_id, email: 'access@example.com', name: 'x', role: 'member' })],
  'add members': [
    teamBatches.addMembers,
    ({ team_id }) => ({ team_id, members: [{ email: 'batch@example.com', name: 'x', role: 'member' }] }),
  ],
  'change a role': [members.changeRole, ({ team_id, user_id }) => ({ team_id, user_id, role: 'viewer' })],
  'change a role, but for owners': [
    teamBatches.changeRole,
    ({ team_id, user_id }) => ({ team_id, user_id, role: 'viewer' }),
  ],
  'issue a key': [members.issueKey, ({ team_id, user_id }) => ({ team_id, user_id })],
  'revoke a key': [members.revokeKey, ({ team_id, user_id }) => ({ team_id, user_id })],
  'make a workspace': [workspaces.create, ({ team_id }) => ({ team_id, name: 'x' })],
  'delete a workspace': [workspaces.delete, ({ workspace_id }) => ({ workspace_id })],
  'remove a member': [members.remove, ({ team_id, user_id }) => ({ team_id, user_id })],
  'delete the team': [teams.delete, ({ team_id }) => ({ team_id })],
};

const ofTheOperator: Record<string, Asked> = {
  'suspend the team': [teams.suspend, ({ team_id }) => ({ team_id })],
  'unsuspend the team': [teams.unsuspend, ({ team_id }) => ({ team_id })],
  'name all teams': [teamBatches.names, () => ({})],
  'welcome a person': [teamBatches.welcome, ({ team_id }) => ({ team_id, email: 'welcome@example.com' })],
  'set a first password': [
    teamBatches.onboard,
    () => ({ email: 'nobody@example.com', password: 'correct horse battery staple' }),
  ],
  'list policies': [imagePolicies.list, () => ({})],
  'read a policy': [imagePolicies.get, () => ({ id: unknownId })],
  'make a policy': [imagePolicies.create, () => ({ name: 'x' })],
  'change a policy': [imagePolicies.update, () => ({ id: unknownId, name: 'x' })],
  'delete a policy': [imagePolicies.delete, () => ({ id: unknownId })],
  'assign a policy': [imagePolicies.assign, ({ team_id }) => ({ id: unknownId, team_id })],
};

const reads = ['read the team', 'list members', 'find members', 'list workspaces', 'list images', 'check an image'];
const givesBack = ['revoke an invitation', 'remove a member', 'revoke a key', 'delete a workspace', 'delete the team'];
const whileSuspended = [...reads, 'list invitations', ...givesBack];
const names = Object.keys(ofTheTeam);
const may: Record<TeamRole, string[]> = {
  team_owner: names,
  team_admin: names.filter((name) => name !== 'delete the team'),
  member: reads,
  billing_viewer: reads,
  viewer: reads,
};

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

/** How a user may call: by a key to the team, or by a session. */
const ways = ['key', 'session'] as const;
type Way = (typeof ways)[number];
type Ask = (operation: Operation, input: object) => Promise<object>;

/** A team with somebody of the role who asks, a member who is asked about, a workspace, and an invitation. */
async function placeFor(role: TeamRole): Promise<{ made: MadeTeam; place: Place }> {
  const made = await fixture.createTeam(role, 'member');
  const team_id = made.team.id;
  const { id: workspace_id } = await fixture.call(fixture.admin, workspaces.create, { team_id, name: 'lab' });
  const invited = { team_id, email: `${randomUUID()}@example.com`, name: 'x', role: 'member' } as const;
  const { user_id } = await fixture.call(fixture.admin, members.add, invited);
  const sql = `SELECT id FROM membership WHERE team_id = $1 AND user_id = $2 AND status = 'invited'`;
  const [{ id: invitation_id = '' } = {}] = await fixture.query<{ id: string }>(sql, [team_id, user_id]);
  const place = { team_id, user_id: made.userIds[1] ?? '', workspace_id, invitation_id };
  return { made, place };
}

const untouched = new Map<TeamRole, ReturnType<typeof placeFor>>();
/** One for each role, for specs in which nothing is done to it. */
function placeToReadFor(role: TeamRole): ReturnType<typeof placeFor> {
  const made = untouched.get(role) ?? placeFor(role);
  untouched.set(role, made);
  return made;
}

async function askerOf({ keys, userIds }: MadeTeam, way: Way): Promise<Ask> {
  if (way === 'key') return (operation, input) => fixture.call(keys[0] ?? '', operation, input);
  const session = await fixture.get(SessionsService).open(userIds[0] ?? '', home, gateway);
  return async (operation, input) => fixture.ask(operation, input, await contextOf(fixture, session));
}

async function outcomeOf(ask: Ask, [operation, input]: Asked, place: Place): Promise<string> {
  try {
    await ask(operation, input(place));
    return 'done';
  } catch (error) {
    if (isAppError(error)) return error.code;
    throw error;
  }
}

async function outcomes(
  [role, way]: [TeamRole, Way],
  table: Record<string, Asked>,
  make: (role: TeamRole) => ReturnType<typeof placeFor>,
) {
  const { made, place } = await make(role);
  const ask = await askerOf(made, way);
  const found: Record<string, string> = {};
  for (const [name, asked] of Object.entries(table)) found[name] = await outcomeOf(ask, asked, place);
  return found;
}

const expected = (outcomeFor: (name: string) => string) =>
  Object.fromEntries(names.map((name) => [name, outcomeFor(name)]));

describe.each(ways)('who may do what by a %s', (way) => {
  it.each(teamRoles)('as %s', async (role) => {
    const make = may[role] === reads ? placeToReadFor : placeFor;
    expect(await outcomes([role, way], ofTheTeam, make)).toEqual(
      expected((name) => (may[role].includes(name) ? 'done' : 'forbidden')),
    );
  });

  it.each(teamRoles)('as %s of a suspended team: read and give back', async (role) => {
    const found = await outcomes([role, way], ofTheTeam, async () => {
      const suspended = await placeFor(role);
      await fixture.call(fixture.admin, teams.suspend, { team_id: suspended.place.team_id });
      return suspended;
    });
    const outcomeFor = (name: string): string => {
      if (!may[role].includes(name)) return 'forbidden';
      return whileSuspended.includes(name) ? 'done' : 'team_suspended';
    };
    expect(found).toEqual(expected(outcomeFor));
  });

  it.each(teamRoles)("as %s nothing that is the operator's", async (role) => {
    const found = await outcomes([role, way], ofTheOperator, placeToReadFor);
    expect(new Set(Object.values(found))).toEqual(new Set(['forbidden']));
  });
});

describe.each(ways)('another team, by a %s', (way) => {
  let stranger: Ask;
  let place: Place;
  beforeAll(async () => {
    stranger = await askerOf(await fixture.createTeam('team_owner'), way);
    ({ place } = await placeToReadFor('member'));
  });

  it.each(Object.entries(ofTheTeam))('is not there for whoever would %s', async (_name, [operation, input]) => {
    const nowhere = { team_id: unknownId, user_id: unknownId, workspace_id: unknownId, invitation_id: unknownId };
    const [theirs, missing] = await Promise.all(
      [place, nowhere].map((ids) => errorOf(stranger(operation, input(ids)))),
    );
    expect(theirs?.code).toBe('not_found');
    expect(theirs?.toWire()).toEqual(missing?.toWire());
  });
});

describe('another team', () => {
  it('is not there for the key of a user who is a member of it as well', async () => {
    const one = await fixture.createTeam('team_owner');
    const other = await fixture.createTeam();
    await fixture.call(fixture.admin, members.add, {
      team_id: other.team.id,
      email: one.emails[0] ?? '',
      name: 'x',
      role: 'team_owner',
    });
    expect((await errorOf(fixture.call(one.keys[0] ?? '', teams.get, { team_id: other.team.id }))).code).toBe(
      'not_found',
    );
  });
});
