import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { links, teamBatches, teams, type OnboardUser, type WelcomeUser } from '@atoll/contracts/teams';
import { MailServer } from '../mail/mail-server-fixture.js';
import { contextOf, gateway, logIn, password, somebody, tokenIn } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture, unknownId, type MadeTeam } from '../teams-fixture.js';

let server: MailServer;
let fixture: TeamsFixture;
let own: MadeTeam;
beforeAll(async () => {
  server = await MailServer.start();
  fixture = await TeamsFixture.start({ smtpUrl: server.url });
  own = await fixture.createTeam('team_owner');
});
afterAll(async () => {
  await fixture.stop();
  await server.stop();
});

const fresh = () => `${randomUUID()}@example.com`;
const welcome = (asked: WelcomeUser, key = fixture.admin) => fixture.call(key, teamBatches.welcome, asked);
const onboard = (asked: OnboardUser, key = fixture.admin) => fixture.call(key, teamBatches.onboard, asked);
const use = (url: string, secret = password) =>
  fixture.ask(links.use, { token: tokenIn(url), password: secret }, gateway);
const memberIn = async (email: string) =>
  (await fixture.call(fixture.admin, teams.get, { team_id: own.team.id })).members.find(
    (member) => member.email === email,
  );

describe('a person whom the operator welcomes', () => {
  it('becomes a user and a member with the role, who joins by the link', async () => {
    const asked = { email: fresh(), team_id: own.team.id, role: 'viewer' as const };
    const { userId: another } = await somebody(fixture);
    await fixture.query(`INSERT INTO second_factor (user_id, sealed, is_confirmed) VALUES ($1, 'x', true)`, [another]);
    const welcomed = await welcome(asked);
    expect(welcomed).toMatchObject({ has_password: false, has_second_factor: false });
    expect(await memberIn(asked.email)).toMatchObject({ role: 'viewer', status: 'invited' });
    await use(welcomed.url);
    expect(await memberIn(asked.email)).toMatchObject({ role: 'viewer', status: 'active' });
    const context = await contextOf(fixture, await logIn(fixture, asked));
    expect(context.caller).toMatchObject({ scope: 'user', teams: [{ teamId: own.team.id }] });
  });

  it('keeps role and password where there are any; the link before is replaced', async () => {
    const { email } = await somebody(fixture);
    const first = await welcome({ email, team_id: own.team.id, role: 'member' });
    const second = await welcome({
      email,
      team_id: own.team.id,
      role: 'team_admin',
      password: 'chosen by a shop',
      name: 'Other',
    });
    expect(second.has_password).toBe(true);
    expect(await memberIn(email)).toMatchObject({ role: 'member', status: 'invited' });
    expect((await errorOf(use(first.url))).code).toBe('unauthenticated');
    expect((await errorOf(use(second.url, 'chosen by a shop'))).code).toBe('unauthenticated');
    await use(second.url);
    expect(await memberIn(email)).toMatchObject({ role: 'member', status: 'active' });
    await use((await welcome({ email, team_id: own.team.id })).url, 'another good phrase');
    await logIn(fixture, { email }, undefined, 'another good phrase');
  });

  it('may have a first password at once, and is a member with it', async () => {
    const email = fresh();
    const welcomed = await welcome({ email, name: 'Ada', password, team_id: own.team.id });
    expect(welcomed.has_password).toBe(true);
    expect(await memberIn(email)).toMatchObject({ name: 'Ada', role: 'member', status: 'active' });
    expect((await logIn(fixture, { email })).user).toMatchObject({ name: 'Ada', teams: [{ id: own.team.id }] });
  });

  it('is invited by a mail of the team, by which teams take turns', async () => {
    const email = fresh();
    server.isRefusing = true;
    await welcome({ email, team_id: own.team.id, send_mail: true });
    const mails = await fixture.query('SELECT team_id FROM mail WHERE address = $1', [email]);
    server.isRefusing = false;
    expect(mails).toEqual([{ team_id: own.team.id }]);
  });

  it('gets the link by mail where that is asked for, once, and the one that is answered is the same', async () => {
    const [quiet, asked] = [fresh(), fresh()];
    await welcome({ email: quiet, team_id: own.team.id });
    const { url } = await welcome({ email: asked, team_id: own.team.id, send_mail: true });
    const [mail] = await server.to(asked);
    expect(mail?.text.replaceAll(/=\r?\n/g, '')).toContain(tokenIn(url));
    expect(await fixture.query('SELECT FROM mail WHERE address = $1', [quiet])).toEqual([]);
    expect(server.received.filter(({ to }) => to.includes(quiet) || to.includes(asked))).toHaveLength(1);
  });

  it('is nobody where the team is none, the password is common or another than the operator asks', async () => {
    const email = fresh();
    expect((await errorOf(welcome({ email, team_id: unknownId }))).code).toBe('not_found');
    expect((await errorOf(welcome({ email, password: 'Password1234!' }))).details.errors?.[0]?.path).toBe('password');
    expect((await errorOf(welcome({ email, team_id: own.team.id }, own.keys[0]))).code).toBe('forbidden');
    expect(await fixture.query('SELECT FROM "user" WHERE email = $1', [email])).toEqual([]);
  });

  it('does not lock against whoever adds the same person to the team', async () => {
    const asked = Array.from({ length: 4 }, fresh);
    const outcomes = await Promise.allSettled(
      asked.flatMap((email) => {
        const members = [{ email, name: 'x', role: 'member' as const }];
        return [
          welcome({ email, team_id: own.team.id }),
          fixture.call(own.keys[0] ?? '', teamBatches.addMembers, { team_id: own.team.id, members }),
        ];
      }),
    );
    const failed = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [(outcome.reason as { code: string }).code] : [],
    );
    expect(new Set(failed)).toEqual(new Set(failed.length > 0 ? ['conflict'] : []));
    for (const email of asked) expect(await memberIn(email)).toBeDefined();
  });
});

describe('a first password', () => {
  it('is set by the operator, once, and ends the links that were good for it', async () => {
    const email = fresh();
    const { url } = await welcome({ email });
    await onboard({ email, name: 'Ada', password });
    expect((await logIn(fixture, { email })).user.name).toBe('Ada');
    expect((await errorOf(use(url, 'another good phrase'))).code).toBe('unauthenticated');
    expect((await errorOf(onboard({ email, password: 'another good phrase' }))).code).toBe('conflict');
    await logIn(fixture, { email });
  });

  it('of two at once one is set', async () => {
    const email = fresh();
    await welcome({ email });
    const outcomes = await Promise.allSettled([
      onboard({ email, password }),
      onboard({ email, password: 'another good phrase' }),
    ]);
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  });

  it('takes the operator, a user and a password that is not common', async () => {
    const { email } = await somebody(fixture);
    expect((await errorOf(onboard({ email, password }, own.keys[0]))).code).toBe('forbidden');
    expect((await errorOf(onboard({ email: fresh(), password }))).code).toBe('not_found');
    expect((await errorOf(onboard({ email, password: '1qaz2wsx3edc' }))).code).toBe('invalid_input');
  });
});
