import { describe, expect, it } from '@jest/globals';
import {
  adminKey,
  call,
  createTeam,
  freshEmail,
  platformUrl,
  succeed,
  until,
  type Answer,
  type MemberView,
} from './client.js';

const password = 'correct horse battery staple';

interface LoggedIn {
  access_token: string;
  expires_in: number;
  user: { id: string; email: string; name: string; role: string; teams: { id: string }[] };
}

interface SessionView {
  id: string;
  current: boolean;
  device: string;
}

/** A browser: it keeps the cookie of its session, and each of its tabs an access token. */
class Browser {
  cookie = '';

  async send<Body = LoggedIn>(
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<Answer<Body>> {
    const sent = { origin: platformUrl, 'sec-fetch-site': 'same-origin', 'user-agent': 'a browser', ...headers };
    const answer = await call<Body>('POST', path, {
      body,
      headers: { ...sent, ...(this.cookie && { cookie: this.cookie }) },
    });
    const [set] = [answer.headers['set-cookie'] ?? []].flat();
    if (set) this.cookie = set.split(';')[0] ?? '';
    return answer;
  }

  logIn(email: string, secret = password): Promise<Answer<LoggedIn>> {
    return this.send('/user/login', { email, password: secret });
  }

  /** What another browser would have that was given a copy of the cookie. */
  stolen(): Browser {
    return Object.assign(new Browser(), { cookie: this.cookie });
  }
}

const profile = (token: string) => call<LoggedIn['user']>('GET', '/user/profile', { key: token });

/** A user with a password, and the browser in which they are logged in. */
async function loggedIn() {
  const { team, keys } = await createTeam('Sessions');
  const [member] = team.members as [MemberView];
  const { url } = await succeed<{ url: string }>('POST', '/user/login-link', {
    key: adminKey,
    body: { email: member.email },
  });
  await succeed('POST', '/user/link', { body: { token: url.split('#')[1], password } });
  const browser = new Browser();
  const { body } = await browser.logIn(member.email);
  return { team, member, browser, key: keys.team_owner ?? '', token: body.access_token, user: body.user };
}

describe('a session', () => {
  it('begins with a password set by a one-time link, and acts for its user as a key does', async () => {
    const { team, member, token, user } = await loggedIn();
    expect(user).toMatchObject({ id: member.user_id, email: member.email, role: 'user', teams: [{ id: team.id }] });
    expect(await profile(token)).toMatchObject({ status: 200, body: user });
    expect((await call('PUT', `/team/${team.id}`, { key: token, body: { name: 'Renamed' } })).status).toBe(200);
    expect(
      (await call('GET', `/gpuaas/pool-subscription?team_id=${team.id}&gpuaas_id=1`, { key: token })).status,
    ).toBeLessThan(500);
    const theirs = await createTeam('Theirs');
    expect((await call('GET', `/team/${theirs.team.id}`, { key: token })).status).toBe(404);
    expect((await call('POST', '/user/login-link', { key: token, body: { email: member.email } })).status).toBe(403);
  });

  it('has a link that is used once, even at once', async () => {
    const { member } = await loggedIn();
    const { url } = await succeed<{ url: string }>('POST', '/user/login-link', {
      key: adminKey,
      body: { email: member.email },
    });
    expect(url.startsWith(`${platformUrl.replace('127.0.0.1', 'localhost')}/link#`)).toBe(true);
    const use = () => call('POST', '/user/link', { body: { token: url.split('#')[1], password } });
    const statuses = await Promise.all([use(), use(), use()]);
    expect(statuses.map(({ status }) => status).toSorted()).toEqual([200, 401, 401]);
  });

  it('gives each tab its own access token by the cookie, and ends in all of them with a log-out in one', async () => {
    const { browser, token } = await loggedIn();
    const second = (await browser.send('/user/refresh')).body.access_token;
    const third = (await browser.send('/user/refresh')).body.access_token;
    for (const tab of [token, second, third]) expect((await profile(tab)).status).toBe(200);
    expect((await browser.send('/user/logout')).status).toBe(204);
    for (const tab of [token, second, third])
      expect(await profile(tab)).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
    expect((await browser.send('/user/refresh')).status).toBe(401);
    expect((await browser.send('/user/logout')).status).toBe(204);
  });

  it('ends in all tabs with a log-out by an access token alone, even at once', async () => {
    const { browser, token } = await loggedIn();
    const second = (await browser.send('/user/refresh')).body.access_token;
    const logOut = () => call('POST', '/user/logout', { key: token });
    for (const { status } of await Promise.all([logOut(), logOut(), logOut()])) expect(status).toBe(204);
    for (const tab of [token, second])
      expect(await profile(tab)).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
    expect((await browser.send('/user/refresh')).status).toBe(401);
    expect((await logOut()).status).toBe(204);
  });

  it('ends with the log-out of its own tab, and not with that of a tab whose user was logged in with the browser before', async () => {
    const [before, now] = [await loggedIn(), await loggedIn()];
    const { browser } = now;
    const logOut = (token: string) => browser.send('/user/logout', undefined, { authorization: `Bearer ${token}` });
    const earlier = (await before.browser.logIn(before.member.email)).body.access_token;
    expect((await logOut(before.token)).status).toBe(204);
    expect((await profile(before.token)).status).toBe(401);
    for (const token of [earlier, now.token]) expect((await profile(token)).status).toBe(200);
    expect((await browser.send('/user/refresh')).status).toBe(200);
    // Of two sessions of one user both end: the browser is logged out.
    const again = (await browser.logIn(now.member.email)).body.access_token;
    expect((await logOut(now.token)).status).toBe(204);
    for (const token of [now.token, again]) expect((await profile(token)).status).toBe(401);
    expect((await browser.send('/user/refresh')).status).toBe(401);
  });

  it('of which the cookie was stolen ends when the other one of the two refreshes, whoever was first', async () => {
    for (const isThiefFirst of [true, false]) {
      const { browser, token } = await loggedIn();
      const thief = browser.stolen();
      const [first, second] = isThiefFirst ? [thief, browser] : [browser, thief];
      expect((await first.send('/user/refresh')).status).toBe(200);
      const gained = (await first.send('/user/refresh')).body.access_token;
      expect((await second.send('/user/refresh')).status).toBe(401);
      for (const held of [token, gained])
        await until(
          () => profile(held),
          ({ status }) => status === 401,
          15_000,
        );
      expect((await first.send('/user/refresh')).status).toBe(401);
    }
  });

  it('survives tabs that refresh at once', async () => {
    const { browser } = await loggedIn();
    const tabs = await Promise.all([1, 2, 3].map(() => browser.stolen().send('/user/refresh')));
    expect(tabs.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(tabs.map(({ headers }) => String(headers['set-cookie']).split(';')[0])).size).toBe(1);
  });

  it('is seen and ended by its user elsewhere, and all of them by the operator', async () => {
    const { browser, member, token } = await loggedIn();
    const other = new Browser();
    const elsewhere = (await other.logIn(member.email)).body.access_token;
    const { data } = await succeed<{ data: SessionView[] }>('GET', '/user/sessions', { key: elsewhere });
    expect(data.map(({ current, device }) => [current, device])).toEqual([
      [true, 'a browser'],
      [false, 'a browser'],
    ]);
    expect((await call('DELETE', `/user/sessions/${data[1]?.id}`, { key: elsewhere })).status).toBe(204);
    expect([(await profile(token)).status, (await profile(elsewhere)).status]).toEqual([401, 200]);
    expect((await browser.send('/user/refresh')).status).toBe(401);
    expect((await call('DELETE', `/user/sessions?user_id=${member.user_id}`, { key: adminKey })).status).toBe(204);
    await until(
      () => profile(elsewhere),
      ({ status }) => status === 401,
      15_000,
    );
  });

  it('ends with a change of the password, but for the one that changed it', async () => {
    const { member, token } = await loggedIn();
    const { access_token: other } = (await new Browser().logIn(member.email)).body;
    const body = { current: password, new: 'another good phrase' };
    expect(
      (await call('PUT', '/user/password', { key: token, body: { ...body, current: 'a wrong one' } })).status,
    ).toBe(403);
    expect((await call('PUT', '/user/password', { key: token, body })).status).toBe(204);
    expect([(await profile(token)).status, (await profile(other)).status]).toEqual([200, 401]);
    expect((await new Browser().logIn(member.email)).status).toBe(401);
    expect((await new Browser().logIn(member.email, body.new)).status).toBe(200);
  });
});

describe('an invitation', () => {
  it('is accepted by its link: the person sets a password, is seen by the team, and reaches no other team until the address is verified', async () => {
    const { team, keys } = await createTeam('Inviting');
    const other = await createTeam('Other');
    const email = freshEmail('invited');
    const invite = (path: string, key = '') =>
      succeed<MemberView & { invitation: { url: string } }>('POST', path, {
        key,
        body: { email, name: 'As sent', role: 'member' },
      });
    const { invitation } = await invite(`/team/${team.id}/members`, keys.team_owner);
    await invite(`/team/${other.team.id}/members`, other.keys.team_owner);
    const listed = await succeed<{ data: { email: string }[] }>('GET', `/team/${team.id}/invitations`, {
      key: keys.team_owner,
    });
    expect(listed.data.map((one) => one.email)).toContain(email);
    await succeed('POST', '/user/link', { body: { token: invitation.url.split('#')[1], password, name: 'Ada' } });
    const { body } = await new Browser().logIn(email);
    expect(body.user).toMatchObject({ email, name: 'Ada', teams: [{ id: team.id }] });
    const members = await succeed<{ data: MemberView[] }>('GET', `/team/${team.id}/members`, {
      key: body.access_token,
    });
    expect(members.data.find((one) => one.email === email)).toMatchObject({ name: 'Ada', status: 'active' });
    expect((await call('GET', `/team/${other.team.id}`, { key: body.access_token })).status).toBe(404);
    const { url } = await succeed<{ url: string }>('POST', '/user/login-link', { key: adminKey, body: { email } });
    await succeed('POST', '/user/link', { body: { token: url.split('#')[1], password } });
    const verified = (await new Browser().logIn(email)).body;
    expect(
      (await call('POST', `/team/${other.team.id}/invitations/accept`, { key: verified.access_token })).status,
    ).toBe(204);
    expect((await call('GET', `/team/${other.team.id}`, { key: verified.access_token })).status).toBe(200);
  });

  it('for a new password answers the same whether or not there is such a user', async () => {
    const { member } = await loggedIn();
    for (const email of [member.email, 'nobody@example.com']) {
      const { status, body } = await call('POST', '/user/password-reset', { body: { email } });
      expect([status, body]).toEqual([202, '']);
    }
  });
});

describe('a log-in', () => {
  it('answers a wrong password and an unknown address alike', async () => {
    const { member } = await loggedIn();
    const answers = await Promise.all(
      [member.email, 'nobody@example.com'].map((email) => new Browser().logIn(email, 'wrong password')),
    );
    const [one, other] = answers.map(({ status, body }) => [status, { ...body, request_id: '' }]);
    expect(one).toEqual([401, expect.objectContaining({ detail: 'The e-mail address or the password is wrong.' })]);
    expect(one).toEqual(other);
  });

  it('and refresh and log-out refuse pages of another origin', async () => {
    const { browser, member } = await loggedIn();
    const foreign = { origin: 'https://elsewhere.example.com', 'sec-fetch-site': 'cross-site' };
    for (const path of ['/user/login', '/user/refresh', '/user/logout']) {
      expect((await browser.send(path, { email: member.email, password }, foreign)).status).toBe(403);
    }
    expect((await browser.send('/user/refresh')).status).toBe(200);
  });
});
