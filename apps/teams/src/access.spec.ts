import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventLog, teamRoles, type Operation, type TeamRole } from '@atoll/contracts';
import { deadLetters } from '@atoll/contracts/operator';
import {
  credentials,
  imagePolicies,
  invitations,
  links,
  members,
  passkeys,
  passwords,
  secondFactors,
  sessions,
  singleSignOn,
  teamBatches,
  teamDirectory,
  teams,
  users,
  workspaces,
} from '@atoll/contracts/teams';
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

const letters = deadLetters('teams');

type Asked = [operation: Operation, input: (place: Place) => object];

/** In an order in which each can be done after the ones before. */
const ofTheTeam: Record<string, Asked> = {
  'read the team': [teams.get, ({ team_id }) => ({ team_id })],
  'list members': [members.list, ({ team_id }) => ({ team_id })],
  'find members': [teamBatches.findMembers, ({ team_id }) => ({ team_id, page: 0, limit: 10 })],
  'list workspaces': [workspaces.list, ({ team_id }) => ({ team_id })],
  'count what the team holds': [teams.resourceOverview, ({ team_id }) => ({ team_id })],
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
  'rename a workspace': [workspaces.rename, ({ workspace_id }) => ({ workspace_id, name: 'y' })],
  'delete a workspace': [workspaces.delete, ({ workspace_id }) => ({ workspace_id })],
  'remove a member': [members.remove, ({ team_id, user_id }) => ({ team_id, user_id })],
  'delete the team': [teams.delete, ({ team_id }) => ({ team_id })],
};
/** As `teams.delete`, but for a team that is gone: it cannot be walked behind that. */
const endTheTeam: Asked = [teamBatches.end, ({ team_id }) => ({ team_id })];

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
  'make a team with a policy': [teamBatches.create, () => ({ name: 'x', image_policy_id: unknownId })],
  'make a link': [links.create, () => ({ email: 'nobody@example.com' })],
  'list dead letters': [letters.list, () => ({})],
  'replay a dead letter': [letters.replay, () => ({ service: 'teams', dead_letter_id: unknownId })],
  'drop a dead letter': [letters.drop, () => ({ service: 'teams', dead_letter_id: unknownId })],
};

/** What services ask: the operator is refused too. */
const ofServices: Record<string, Asked> = {
  'read events again': [eventLog('teams').read, () => ({ event_name: 'x', after: 0, published_before_ms: 0 })],
  'read all teams': [teamDirectory.page, () => ({})],
  'look teams up': [teamDirectory.lookUp, ({ team_id }) => ({ team_ids: [team_id] })],
  'look roles up': [teamDirectory.roles, ({ team_id, user_id }) => ({ members: [{ team_id, user_id }] })],
  'ask which credentials live': [teamDirectory.liveCredentials, () => ({ credentials: [] })],
};

/** What is of no team. */
const elsewhere: Record<string, readonly Operation[]> = {
  'what is asked before anybody knows who calls (account-callers.spec.ts)': [
    sessions.logIn,
    secondFactors.logIn,
    passkeys.beginLogIn,
    passkeys.logIn,
    ...Object.values(singleSignOn),
    sessions.refresh,
    sessions.logOut,
    sessions.keys,
    sessions.verify,
    ...Object.values(credentials),
    links.reset,
    links.use,
  ],
  'what users do about their accounts (account-callers.spec.ts)': [
    users.updateProfile,
    users.issueKey,
    users.revokeKey,
    secondFactors.begin,
    secondFactors.confirm,
    secondFactors.remove,
    passkeys.list,
    passkeys.begin,
    passkeys.finish,
    passkeys.remove,
    sessions.list,
    sessions.end,
    sessions.endAll,
    passwords.change,
    invitations.accept,
  ],
  'what any user may: their own profile and teams, and a team of their own': [
    users.profile,
    teams.list,
    teams.create,
    teamBatches.workspaces,
  ],
  'the owner, below': [endTheTeam[0]],
  'whoever has the token of the link': [links.check],
};

const reads = [
  'read the team',
  'list members',
  'find members',
  'list workspaces',
  'count what the team holds',
  'list images',
  'check an image',
];
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
    // What an authorised caller is told where there are no neighbours.
    if (isAppError(error)) return error.code === 'unavailable' ? 'done' : error.code;
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

it('each operation that is served is walked, or is said to be elsewhere', () => {
  const walked = [ofTheTeam, ofTheOperator, ofServices].flatMap((table) => Object.values(table)).map(([one]) => one);
  const known = [...walked, ...Object.values(elsewhere).flat()].map(({ subject }) => subject);
  expect(new Set(known)).toEqual(new Set(fixture.subjects));
});

it('what services ask is refused to users, the operator among them', async () => {
  const { made, place } = await placeToReadFor('team_owner');
  for (const key of [fixture.admin, made.keys[0] ?? '']) {
    const ask: Ask = (operation, input) => fixture.call(key, operation, input);
    for (const [name, asked] of Object.entries(ofServices))
      expect([name, await outcomeOf(ask, asked, place)]).toEqual([name, 'forbidden']);
  }
});

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

it.each(teamRoles)('a team is ended by its owner alone: by a %s', async (role) => {
  const { made, place } = await placeFor(role);
  const outcome = await outcomeOf(await askerOf(made, 'key'), endTheTeam, place);
  expect(outcome).toBe(role === 'team_owner' ? 'done' : 'forbidden');
});

describe.each(ways)('another team, by a %s', (way) => {
  let stranger: Ask;
  let place: Place;
  beforeAll(async () => {
    stranger = await askerOf(await fixture.createTeam('team_owner'), way);
    ({ place } = await placeToReadFor('member'));
  });

  it.each(Object.entries({ ...ofTheTeam, 'end the team': endTheTeam }))(
    'is not there for whoever would %s',
    async (_name, [operation, input]) => {
      const nowhere = { team_id: unknownId, user_id: unknownId, workspace_id: unknownId, invitation_id: unknownId };
      const [theirs, missing] = await Promise.all(
        [place, nowhere].map((ids) => errorOf(stranger(operation, input(ids)))),
      );
      expect(theirs?.code).toBe('not_found');
      expect(theirs?.toWire()).toEqual(missing?.toWire());
    },
  );
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
