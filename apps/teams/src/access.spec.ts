import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { teamRoles, type CallerCredential, type TeamRole, type UserCaller } from '@atoll/contracts';
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
import { contextOf, describeAccess } from '@atoll/testing';
import { contextOf as contextOfSession, gateway, home } from './sessions/session-fixture.js';
import { SessionsService } from './sessions/session.service.js';
import { errorOf, TeamsFixture, unknownId, type MadeTeam } from './teams-fixture.js';

/** The ids that an operation is asked about. */
interface Place {
  team_id: string;
  user_id: string;
  workspace_id: string;
  invitation_id: string;
}

let fixture: TeamsFixture;
/** Whose team no place is. */
let outsiders: MadeTeam;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
  outsiders = await fixture.createTeam('team_owner');
});
afterAll(() => fixture.stop());

/** The teams of the places, each with one of each role and a member who is asked about. */
const made = new Map<string, MadeTeam>();

async function makePlace(): Promise<Place> {
  const here = await fixture.createTeam(...teamRoles, 'member');
  const team_id = here.team.id;
  made.set(team_id, here);
  const { id: workspace_id } = await fixture.call(fixture.admin, workspaces.create, { team_id, name: 'lab' });
  const invited = { team_id, email: `${randomUUID()}@example.com`, name: 'x', role: 'member' } as const;
  const { user_id } = await fixture.call(fixture.admin, members.add, invited);
  const sql = `SELECT id FROM membership WHERE team_id = $1 AND user_id = $2 AND status = 'invited'`;
  const [{ id: invitation_id = '' } = {}] = await fixture.query<{ id: string }>(sql, [team_id, user_id]);
  return { team_id, user_id: here.userIds.at(-1) ?? '', workspace_id, invitation_id };
}

/** Somebody who is in the database: of a team of a place, or of the outsiders where there is no such team. */
async function memberOf(teamId: string, role: TeamRole, kind: CallerCredential['kind']): Promise<UserCaller> {
  const { keys, userIds } = made.get(teamId) ?? outsiders;
  const at = teamRoles.indexOf(role);
  if (kind === 'key') return fixture.callerOf(keys[at] ?? '');
  const session = await fixture.get(SessionsService).open(userIds[at] ?? '', home, gateway);
  return (await contextOfSession(fixture, session)).caller;
}

/** By what was asked for: after the deletion of the team there is none any more. */
const callers = new Map<string, Promise<UserCaller>>();

/** Who is in the database and may do what this caller, who is made up, may. */
async function knownAs({ teams: asked, credential, platformAdmin }: Partial<UserCaller>): Promise<UserCaller> {
  const team = asked?.at(-1);
  if (platformAdmin || !team) return fixture.callerOf(fixture.admin);
  const { teamId, role, lacksSecondFactor = false } = team;
  const kind = credential?.kind ?? 'key';
  const known = callers.get(`${teamId} ${role} ${kind}`) ?? memberOf(teamId, role, kind);
  callers.set(`${teamId} ${role} ${kind}`, known);
  const caller = await known;
  return { ...caller, teams: caller.teams.map((each) => ({ ...each, lacksSecondFactor })) };
}

const ofTeam = ({ team_id }: Place) => ({ team_id });
const ofMember = ({ team_id, user_id }: Place) => ({ team_id, user_id });
const ofInvitation = ({ team_id, invitation_id }: Place) => ({ team_id, invitation_id });
const ofWorkspace = ({ workspace_id }: Place) => ({ workspace_id });

describeAccess<Place>({
  service: 'teams',
  place: makePlace,
  shownOnce: ['api_key', 'url'],
  kept: ['send an invitation again', 'add a member', 'add members', 'issue a key', 'make a workspace', 'make a policy'],
  call: async (operation, input, caller, idempotency) =>
    fixture.ask(operation, input, contextOf(await knownAs(caller), idempotency)),
  query: (sql, values) => fixture.query(sql, values),
  // No service is here that could say what it holds.
  changing: ['count what the team holds'],
  suspension: {
    begin: ({ team_id }) => fixture.call(fixture.admin, teams.suspend, { team_id }),
    permits: [
      'list invitations',
      'revoke an invitation',
      'remove a member',
      'revoke a key',
      'delete a workspace',
      'delete the team',
    ],
  },
  deleted: { begin: ({ team_id }) => fixture.call(fixture.admin, teams.delete, { team_id }), keeps: [] },
  subjects: () => fixture.subjects,
  elsewhere: {
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
    'the owner, below': [teamBatches.end],
    'whoever has the token of the link': [links.check],
  },
  operations: {
    'read the team': ['readTeam', teams.get, ofTeam],
    'list members': ['readTeam', members.list, ofTeam],
    'find members': ['readTeam', teamBatches.findMembers, ({ team_id }) => ({ team_id, page: 0, limit: 10 })],
    'list workspaces': ['readTeam', workspaces.list, ofTeam],
    'count what the team holds': ['readTeam', teams.resourceOverview, ofTeam],
    'list images': ['readTeam', imagePolicies.teamImages, ofTeam],
    'check an image': ['readTeam', imagePolicies.check, ({ team_id }) => ({ team_id, image: 'nginx' })],
    'list invitations': ['manageTeam', invitations.list, ofTeam],
    'send an invitation again': ['manageTeam', invitations.resend, ofInvitation],
    'revoke an invitation': ['manageTeam', invitations.revoke, ofInvitation],
    'change the team': ['manageTeam', teams.update, ({ team_id }) => ({ team_id, name: 'x' })],
    'add a member': [
      'manageTeam',
      members.add,
      ({ team_id }) => ({ team_id, email: 'access@example.com', name: 'x', role: 'member' }),
    ],
    'add members': [
      'manageTeam',
      teamBatches.addMembers,
      ({ team_id }) => ({ team_id, members: [{ email: 'batch@example.com', name: 'x', role: 'member' }] }),
    ],
    'change a role': [
      'manageTeam',
      members.changeRole,
      ({ team_id, user_id }) => ({ team_id, user_id, role: 'viewer' }),
    ],
    'change a role, but for owners': [
      'manageTeam',
      teamBatches.changeRole,
      ({ team_id, user_id }) => ({ team_id, user_id, role: 'viewer' }),
    ],
    'issue a key': ['manageTeam', members.issueKey, ofMember],
    'revoke a key': ['manageTeam', members.revokeKey, ofMember],
    'make a workspace': ['manageTeam', workspaces.create, ({ team_id }) => ({ team_id, name: 'x' })],
    'rename a workspace': ['manageTeam', workspaces.rename, ({ workspace_id }) => ({ workspace_id, name: 'y' })],
    'delete a workspace': ['manageTeam', workspaces.delete, ofWorkspace],
    'remove a member': ['manageTeam', members.remove, ofMember],
    'delete the team': ['deleteTeam', teams.delete, ofTeam],
    'suspend the team': ['operate', teams.suspend, ofTeam],
    'unsuspend the team': ['operate', teams.unsuspend, ofTeam],
    'name all teams': ['operate', teamBatches.names, () => ({})],
    'welcome a person': ['operate', teamBatches.welcome, ({ team_id }) => ({ team_id, email: 'welcome@example.com' })],
    'set a first password': [
      'operate',
      teamBatches.onboard,
      () => ({ email: 'nobody@example.com', password: 'correct horse battery staple' }),
    ],
    'list policies': ['operate', imagePolicies.list, () => ({})],
    'read a policy': ['operate', imagePolicies.get, () => ({ id: unknownId })],
    'make a policy': ['operate', imagePolicies.create, () => ({ name: 'x' })],
    'change a policy': ['operate', imagePolicies.update, () => ({ id: unknownId, name: 'x' })],
    'delete a policy': ['operate', imagePolicies.delete, () => ({ id: unknownId })],
    'assign a policy': ['operate', imagePolicies.assign, ({ team_id }) => ({ id: unknownId, team_id })],
    'make a team with a policy': ['operate', teamBatches.create, () => ({ name: 'x', image_policy_id: unknownId })],
    'make a link': ['operate', links.create, () => ({ email: 'nobody@example.com' })],
    'read all teams': ['serve', teamDirectory.page, () => ({})],
    'look teams up': ['serve', teamDirectory.lookUp, ({ team_id }) => ({ team_ids: [team_id] })],
    'look roles up': ['serve', teamDirectory.roles, ({ team_id, user_id }) => ({ members: [{ team_id, user_id }] })],
    'ask which credentials live': ['serve', teamDirectory.liveCredentials, () => ({ credentials: [] })],
  },
});

it.each(teamRoles)('a team is ended by its owner alone: by a %s', async (role) => {
  const { team, keys } = await fixture.createTeam(role);
  const ended = fixture.call(keys[0] ?? '', teamBatches.end, { team_id: team.id });
  if (role === 'team_owner') expect(await ended).toEqual({ deleting: null });
  else expect((await errorOf(ended)).code).toBe('forbidden');
});

it.each(['key', 'session'] as const)('another team is not there for whoever would end it by a %s', async (kind) => {
  const { team_id } = await makePlace();
  const caller = await memberOf(unknownId, 'team_owner', kind);
  const end = (id: string) => errorOf(fixture.ask(teamBatches.end, { team_id: id }, contextOf(caller)));
  const [theirs, missing] = [await end(team_id), await end(unknownId)];
  expect(theirs.code).toBe('not_found');
  expect(theirs.toWire()).toEqual(missing.toWire());
});

it('another team is not there for the key of a user who is a member of it as well', async () => {
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
