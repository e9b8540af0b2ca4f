import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { freePort, startNats, timeoutFactor, type NatsServer } from '@atoll/testing';
import { Sealer } from '@atoll/seal';
import { call, createTeam, succeed, until, type MemberView } from '../client.js';
import { startPlatform, type RunningPlatform } from '../running-platform.js';

const password = 'correct horse battery staple';
/** A gateway believes what it knows of a session for 5 s: what it knows sooner, it was told. */
const toldWithinMs = 3_000;
const startMs = 120_000 * timeoutFactor;

interface LoggedIn {
  access_token: string;
}

let broker: NatsServer;
let platform: RunningPlatform;
let second: ChildProcess;
let urls: readonly [string, string];
beforeAll(async () => {
  broker = await startNats();
  const port = await freePort();
  const env = {
    NATS_URL: broker.url,
    ATOLL_BUS_SECRET: 'a bus secret of the stories',
    ATOLL_KEY_PEPPER: 'a pepper of the stories',
    ATOLL_SEAL_KEYS: Sealer.createKeys(),
    ATOLL_PUBLIC_URL: `http://localhost:${port}`,
    ATOLL_LIMITS: 'off',
  };
  platform = await startPlatform('services', { ...env, PORT: String(port) });
  const otherPort = await freePort();
  second = spawn(process.execPath, ['dist/apps/gateway/src/main.js'], {
    env: { ...process.env, ...env, PORT: String(otherPort) },
    stdio: 'ignore',
  });
  urls = [platform.url, `http://127.0.0.1:${otherPort}`];
  const isReady = () =>
    fetch(`${urls[1]}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isReady, (ready) => ready, 30_000);
}, startMs);
afterAll(async () => {
  if (second) {
    const ended = once(second, 'exit');
    second.kill('SIGTERM');
    await ended;
  }
  await platform?.stop();
  await broker?.stop();
});

/** A member of a team with a password. */
async function member() {
  const { team, keys } = await createTeam('Two gateways', ['team_owner', 'member'], platform);
  const { email, user_id } = team.members.find(({ role }) => role === 'member') as MemberView;
  const { url } = await succeed<{ url: string }>('POST', '/user/login-link', { url: urls[0], key: platform.adminKey, body: { email } });
  await succeed('POST', '/user/link', { url: urls[0], body: { token: url.split('#')[1], password } });
  return { team, owner: keys.team_owner ?? '', email, userId: user_id };
}

/** A log-in through one gateway: what its browser holds. */
async function logIn(email: string, url = urls[0], secret = password): Promise<{ token: string; cookie: string }> {
  const { status, body, headers } = await call<LoggedIn>('POST', '/user/login', { url, body: { email, password: secret } });
  expect(status).toBe(200);
  return { token: body.access_token, cookie: String(headers['set-cookie']).split(';')[0] ?? '' };
}

const statusAt = async (url: string, token: string, path = '/user/profile') => (await call('GET', path, { url, key: token })).status;

/** Both gateways have looked at the session just now, and remember it; then it ends, and both refuse it. */
async function expectEnd(token: string, end: () => Promise<unknown>): Promise<void> {
  for (const url of urls) expect(await statusAt(url, token)).toBe(200);
  await end();
  for (const url of urls) {
    await until(
      () => statusAt(url, token),
      (status) => status === 401,
      toldWithinMs,
    );
  }
}

describe('a session ends for every gateway at once', () => {
  it('when its user ends it from another session, through the other gateway', async () => {
    const { email } = await member();
    const [one, other] = [await logIn(email, urls[0]), await logIn(email, urls[1])];
    const { data } = await succeed<{ data: { id: string; current: boolean }[] }>('GET', '/user/sessions', {
      url: urls[1],
      key: other.token,
    });
    const [{ id = '' } = {}] = data.filter(({ current }) => !current);
    expect(data).toHaveLength(2);
    await expectEnd(one.token, () => succeed('DELETE', `/user/sessions/${id}`, { url: urls[1], key: other.token }));
    expect((await call('POST', '/user/refresh', { url: urls[0], headers: { cookie: one.cookie } })).status).toBe(401);
    for (const url of urls) expect(await statusAt(url, other.token)).toBe(200);
  });

  it.each([0, 1])('by the operator’s hand, through gateway %i', async (through) => {
    const { email, userId } = await member();
    const { token, cookie } = await logIn(email, urls[0]);
    const path = `/user/sessions?user_id=${userId}`;
    await expectEnd(token, () => succeed('DELETE', path, { url: urls[through] ?? '', key: platform.adminKey }));
    for (const url of urls) expect((await call('POST', '/user/refresh', { url, headers: { cookie } })).status).toBe(401);
  });

  it('by log-out, a change of the password, and a refresh token that is used twice', async () => {
    const { email } = await member();
    const out = await logIn(email);
    await expectEnd(out.token, () => succeed('POST', '/user/logout', { url: urls[1], headers: { cookie: out.cookie } }));

    const stolen = await logIn(email);
    const refresh = (cookie: string, url: string) => call<LoggedIn>('POST', '/user/refresh', { url, headers: { cookie } });
    const next = String((await refresh(stolen.cookie, urls[0])).headers['set-cookie']).split(';')[0] ?? '';
    await refresh(next, urls[1]);
    await expectEnd(stolen.token, async () => expect((await refresh(stolen.cookie, urls[1])).status).toBe(401));

    const [kept, ended] = [await logIn(email), await logIn(email, urls[1])];
    const body = { current: password, new: 'another good phrase' };
    await expectEnd(ended.token, () => succeed('PUT', '/user/password', { url: urls[0], key: kept.token, body }));
    for (const url of urls) expect(await statusAt(url, kept.token)).toBe(200);
  });
});

it('a member who is removed is out of the team at every gateway at once, and keeps the session', async () => {
  const { team, owner, email, userId } = await member();
  const { token } = await logIn(email);
  for (const url of urls) expect(await statusAt(url, token, `/team/${team.id}`)).toBe(200);
  await succeed('DELETE', `/team/${team.id}/members/${userId}`, { url: urls[1], key: owner });
  for (const url of urls) {
    await until(
      () => statusAt(url, token, `/team/${team.id}`),
      (status) => status === 404,
      toldWithinMs,
    );
    expect(await statusAt(url, token)).toBe(200);
  }
});
