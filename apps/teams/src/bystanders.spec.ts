import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { CallContext, Operation } from '@atoll/contracts';
import {
  imagePolicies,
  invitations,
  links,
  members,
  passkeys,
  passwords,
  secondFactors,
  sessions,
  teamBatches,
  teams,
  users,
  workspaces,
} from '@atoll/contracts/teams';
import { Bystander } from '@atoll/testing';
import { Secret, TOTP } from 'otpauth';
import { MailServer } from './mail/mail-server-fixture.js';
import {
  addPasskey,
  anAuthenticator,
  logInBy,
  publicUrl,
  type Authenticator,
} from './passkeys/authenticator-fixture.js';
import { contextOf, elsewhere, gateway, home, logIn, password, refresh, tokenIn } from './sessions/session-fixture.js';
import { errorOf, TeamsFixture } from './teams-fixture.js';

let server: MailServer;
let fixture: TeamsFixture;
beforeAll(async () => {
  server = await MailServer.start();
  fixture = await TeamsFixture.start({ smtpUrl: server.url, publicUrl });
});
afterAll(async () => {
  await fixture.stop();
  await server.stop();
});

type Ask = <I extends object, O extends object>(operation: Operation<I, O>, input: NoInfer<I>) => Promise<O>;

/** Somebody with all that a user may have, who owns a team with all that a team may have. */
interface Account {
  readonly context: CallContext;
  readonly ask: Ask;
  readonly email: string;
  readonly teamId: string;
  readonly memberId: string;
  readonly recoveryCodes: string[];
  readonly authenticator: Authenticator;
  /** All people of the team. */
  readonly userIds: string[];
}

const asUser =
  (context: CallContext): Ask =>
  (operation, input) =>
    fixture.ask(operation, input, context);
const asOperator: Ask = (operation, input) => fixture.call(fixture.admin, operation, input);
const anEmail = () => `${randomUUID()}@example.com`;

async function addFactor(ask: Ask): Promise<string[]> {
  const { secret } = await ask(secondFactors.begin, {});
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  return (await ask(secondFactors.confirm, { code })).recovery_codes;
}

async function open(): Promise<Account> {
  const { team, userIds, emails } = await fixture.createTeam('team_owner', 'member');
  const [email = '', memberEmail = ''] = emails;
  for (const each of [email, memberEmail]) {
    const { url } = await asOperator(links.create, { email: each });
    await fixture.ask(links.use, { token: tokenIn(url), password }, gateway);
    await logIn(fixture, { email: each }, elsewhere);
  }
  const context = await contextOf(fixture, await logIn(fixture, { email }));
  const ask = asUser(context);
  const recoveryCodes = await addFactor(ask);
  await asUser(await contextOf(fixture, await logIn(fixture, { email: memberEmail })))(secondFactors.begin, {});
  // Their last code is as one of five minutes ago: one that is used now makes a difference.
  await fixture.query('UPDATE second_factor SET last_step = last_step - 10 WHERE user_id = $1', [userIds[0]]);
  const authenticator = anAuthenticator();
  await addPasskey(fixture, context, authenticator);
  await ask(users.issueKey, {});
  await ask(workspaces.create, { team_id: team.id, name: 'lab' });
  const invited = await ask(members.add, { team_id: team.id, email: anEmail(), name: 'Guest', role: 'viewer' });
  await asOperator(links.create, { email, remove_second_factors: true });
  const memberId = userIds[1] ?? '';
  const all = [...userIds, invited.user_id];
  return {
    context,
    ask,
    email,
    teamId: team.id,
    memberId,
    recoveryCodes,
    authenticator,
    userIds: all,
  };
}

/** All that a user may do to themselves and to their team, in an order in which each can be done after those before. */
function stepsOf({ ask, email, teamId: team_id, ...own }: Account): [name: string, step: () => Promise<unknown>][] {
  const codes = [...own.recoveryCodes];
  const ticket = async () => (await errorOf(logIn(fixture, { email }))).details.secondFactor?.ticket ?? '';
  const bySecondFactor = async () =>
    fixture.ask(secondFactors.logIn, { ticket: await ticket(), code: codes.pop() ?? '', ...home }, gateway);
  const byPasskey = () => logInBy(fixture, own.authenticator);
  const member = { team_id, user_id: own.memberId };
  const somebodyNew = () => ({ email: anEmail(), name: 'New', role: 'member' as const });
  const invitation = async () =>
    (await ask(invitations.list, { team_id })).data.find(({ role }) => role === 'viewer')?.id ?? '';
  const workspaceId = async () =>
    (await ask(workspaces.list, { team_id })).data.find(({ name }) => name !== 'x')?.id ?? '';
  return [
    ['reads the profile', () => ask(users.profile, {})],
    ['changes the profile', () => ask(users.updateProfile, { name: 'Ada' })],
    ['lists sessions', () => ask(sessions.list, {})],
    ['logs in by a recovery code', bySecondFactor],
    [
      'adds a passkey, and removes it',
      async () => {
        const { id } = await addPasskey(fixture, own.context, anAuthenticator());
        return ask(passkeys.remove, { id });
      },
    ],
    ['logs in by a passkey', byPasskey],
    ['refreshes a session', async () => refresh(fixture, await byPasskey())],
    [
      'logs out',
      async () => fixture.ask(sessions.logOut, { refresh_token: (await byPasskey()).refresh_token }, gateway),
    ],
    ['ends a session', async () => ask(sessions.end, { id: (await byPasskey()).session_id })],
    ['lists passkeys', () => ask(passkeys.list, {})],
    ['issues a key', () => ask(users.issueKey, {})],
    ['revokes the key', () => ask(users.revokeKey, {})],
    ['changes the password', () => ask(passwords.change, { current: password, new: 'another good passphrase' })],
    ['asks for a new password', () => fixture.ask(links.reset, { email }, gateway)],
    ['lists teams', () => ask(teams.list, {})],
    ['reads the team', () => ask(teams.get, { team_id })],
    ['changes the team', () => ask(teams.update, { team_id, name: 'Renamed' })],
    ['lists members', () => ask(members.list, { team_id })],
    ['finds members', () => ask(teamBatches.findMembers, { team_id, page: 0, limit: 100 })],
    ['adds a member', () => ask(members.add, { team_id, ...somebodyNew() })],
    ['adds members', () => ask(teamBatches.addMembers, { team_id, members: [somebodyNew()] })],
    ['lists invitations', () => ask(invitations.list, { team_id })],
    ['sends an invitation again', async () => ask(invitations.resend, { team_id, invitation_id: await invitation() })],
    ['revokes an invitation', async () => ask(invitations.revoke, { team_id, invitation_id: await invitation() })],
    ['issues a key of a member', () => ask(members.issueKey, member)],
    ['revokes a key of a member', () => ask(members.revokeKey, member)],
    ['changes a role', () => ask(members.changeRole, { ...member, role: 'viewer' })],
    ['removes a member', () => ask(members.remove, member)],
    ['makes a workspace', () => ask(workspaces.create, { team_id, name: 'x' })],
    ['lists workspaces', () => ask(workspaces.list, { team_id })],
    ['renames a workspace', async () => ask(workspaces.rename, { workspace_id: await workspaceId(), name: 'y' })],
    ['lists images', () => ask(imagePolicies.teamImages, { team_id })],
    ['checks an image', () => ask(imagePolicies.check, { team_id, image: 'nginx' })],
    ['removes the second factor', () => ask(secondFactors.remove, { code: codes.pop() ?? '' })],
    ['adds a second factor', () => addFactor(ask)],
    [
      'loses the second factors by a link',
      async () => {
        const { url } = await asOperator(links.create, { email, remove_second_factors: true });
        return fixture.ask(links.use, { token: tokenIn(url), password: 'yet another good passphrase' }, gateway);
      },
    ],
    ['is suspended', () => asOperator(teams.suspend, { team_id })],
    ['is suspended no more', () => asOperator(teams.unsuspend, { team_id })],
    ['is deleted', () => asOperator(teams.delete, { team_id })],
    ['has all sessions ended', () => asOperator(sessions.endAll, { user_id: own.userIds[0] ?? '' })],
  ];
}

it('law: whatever one team and its people do, of another team and its people nothing is changed, and nothing is shown', async () => {
  const [one, other] = [await open(), await open()];
  const steps = stepsOf(one);
  const isMailed = async () => (await fixture.query('SELECT FROM mail')).length === 0;
  while (!(await isMailed())) await new Promise((resolve) => setTimeout(resolve, 20));
  const theirIds = ({ userIds, teamId }: Account) => [...userIds, teamId];
  const query = <Row extends object>(sql: string, values?: unknown[]) => fixture.query<Row>(sql, values);
  const bystander = await Bystander.of(query, theirIds(other), theirIds(one));
  expect(Object.values(bystander.before).filter((rows) => rows.length > 0).length).toBeGreaterThan(10);
  for (const [name, step] of steps) {
    const answer = await step();
    expect([name, await bystander.rows()]).toEqual([name, bystander.before]);
    expect([name, bystander.shownIn(answer)]).toEqual([name, []]);
  }
});

it('law: what people read of themselves and of their team is the same, whatever others have', async () => {
  const reads = stepsOf(await open()).filter(([name]) => /^(reads|lists|finds|checks) /.test(name));
  const read = async () => {
    const answers: Record<string, unknown> = {};
    for (const [name, step] of reads) answers[name] = await step();
    return answers;
  };
  const before = await read();
  await open();
  expect(await read()).toEqual(before);
  expect(Object.keys(before).length).toBeGreaterThan(8);
});
