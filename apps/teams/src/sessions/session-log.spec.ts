import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { invitations, links, members, passwords, secondFactors, sessions } from '@atoll/contracts/teams';
import { Logger } from '@nestjs/common';
import { Secret, TOTP } from 'otpauth';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { contextOf, elsewhere, gateway, home, logIn, password, refresh, somebody, tokenIn } from './session-fixture.js';

type Line = { message: string } & Record<string, unknown>;

let fixture: TeamsFixture;
let lines: Line[];
beforeAll(async () => {
  fixture = await TeamsFixture.start({ logInTries: '3/600' });
});
beforeEach(() => {
  lines = [];
  for (const level of ['log', 'warn', 'error', 'debug', 'verbose'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation((line: unknown) => {
      lines.push(typeof line === 'object' && line !== null ? (line as Line) : { message: String(line) });
    });
  }
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(() => fixture.stop());

it('each event of a session is in the log with whose it is, from where and in which request, and nothing secret is', async () => {
  const person = await somebody(fixture);
  const attempts = ['7f1b0c52a9e84d6f93c1d20e5b6a48f7', '01890000-0000-7000-8000-00000000000a'];
  const secrets: string[] = [password, person.email, ...attempts];
  const keep = <Opened extends { access_token: string; refresh_token: string }>(opened: Opened): Opened => {
    secrets.push(opened.access_token, opened.refresh_token);
    return opened;
  };
  const first = keep(await logIn(fixture, person));
  await errorOf(logIn(fixture, person, elsewhere, 'a wrong password'));
  for (let tries = 0; tries < 3; tries++) await errorOf(logIn(fixture, person, elsewhere, 'a wrong password'));
  const second = keep(await refresh(fixture, first, home, attempts[0]));
  keep(await refresh(fixture, second, home, attempts[0]));
  await errorOf(refresh(fixture, first, elsewhere, attempts[1]));
  const third = keep(await logIn(fixture, person));
  const context = await contextOf(fixture, third);
  const { secret } = await fixture.ask(secondFactors.begin, {}, context);
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  const { recovery_codes } = await fixture.ask(secondFactors.confirm, { code }, context);
  secrets.push(secret, code, ...recovery_codes);
  const { details } = await errorOf(logIn(fixture, person));
  const ticket = details.secondFactor?.ticket ?? '';
  secrets.push(ticket);
  await errorOf(fixture.ask(secondFactors.logIn, { ticket, code: '000000', ...home }, gateway));
  await fixture.ask(passwords.change, { current: password, new: 'another good phrase' }, context);
  await fixture.ask(sessions.end, { id: third.session_id }, context);
  const { url } = await fixture.call(fixture.admin, links.create, { email: person.email });
  await fixture.ask(links.use, { token: tokenIn(url), password: 'a third good phrase' }, gateway);
  secrets.push('another good phrase', 'a third good phrase', 'a wrong password', tokenIn(url));

  const theirs = lines.filter(({ user_id }) => user_id === person.userId);
  const withPlace = [
    'Logged in',
    'A log-in failed',
    'Too many log-ins failed; further ones are slowed',
    'A refresh token was used twice; the session has ended',
    'A second factor was wrong',
  ];
  const others = [
    'A session has ended',
    'A second factor was added',
    'A password was changed',
    'The operator made a one-time link',
    'A password was set by a one-time link',
  ];
  expect(new Set(theirs.map(({ message }) => message))).toEqual(new Set([...withPlace, ...others]));
  for (const line of theirs) {
    expect(line).toMatchObject({ request_id: expect.any(String) });
    if (withPlace.includes(line.message))
      expect(line).toMatchObject({ address: expect.any(String), device: expect.any(String) });
  }
  const logged = JSON.stringify(lines);
  for (const secret of secrets) expect(logged).not.toContain(secret);
});

it('wrong passwords for invitations are logged and slowed, all teams together, and keep their user from nothing else', async () => {
  const person = await somebody(fixture);
  const context = await contextOf(fixture, await logIn(fixture, person));
  const { team, keys } = await fixture.createTeam('team_owner');
  const asked = { team_id: team.id, email: person.email, name: 'Ada', role: 'member' } as const;
  const { invitation } = await fixture.call(keys[0] ?? '', members.add, asked);
  const accept = (secret: string, url = invitation?.url ?? '') =>
    fixture.ask(links.use, { token: tokenIn(url), password: secret, network: elsewhere.network }, gateway);
  for (const code of ['unauthenticated', 'unauthenticated', 'unauthenticated', 'too_many_requests'])
    expect((await errorOf(accept('a wrong password'))).code).toBe(code);
  const common = { user_id: person.userId, address: elsewhere.network, request_id: expect.any(String) };
  const wrong = { ...common, message: 'An invitation was tried with a wrong password', team_id: team.id };
  const slowed = { ...common, message: 'Too many log-ins failed; further ones are slowed' };
  expect(lines.filter(({ address }) => address === elsewhere.network)).toEqual([wrong, wrong, wrong, slowed]);
  await fixture.ask(passwords.change, { current: password, new: 'another good phrase' }, context);
  const session = await logIn(fixture, person, undefined, 'another good phrase');
  const other = await fixture.createTeam('team_owner');
  const again = await fixture.call(other.keys[0] ?? '', members.add, { ...asked, team_id: other.team.id });
  const guessed = accept('another good phrase', again.invitation?.url ?? '');
  expect((await errorOf(guessed)).code).toBe('too_many_requests');
  await fixture.ask(invitations.accept, { team_id: other.team.id }, await contextOf(fixture, session));
});
