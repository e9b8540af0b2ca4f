import { expect } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from '@atoll/testing';
import { call, createTeam, succeed, until, type MemberView } from '../client.js';
import type { RunningPlatform } from '../running-platform.js';

export const password = 'correct horse battery staple';
/** A gateway believes what it knows of a session for 5 s: what it knows sooner, it was told. */
export const toldWithinMs = 3_000;

export interface LoggedIn {
  access_token: string;
}

/** A platform and a second gateway of it, and people who come through either. */
export class TwoGateways {
  private constructor(
    private readonly platform: RunningPlatform,
    private readonly second: ChildProcess,
    readonly urls: readonly [string, string],
  ) {}

  /** `env`: what the processes of the platform have in common. */
  static async start(platform: RunningPlatform, env: Record<string, string>): Promise<TwoGateways> {
    const port = String(await freePort());
    const second = spawn(process.execPath, ['dist/apps/gateway/src/main.js'], {
      env: { ...process.env, ...env, ATOLL_PUBLIC_URL: platform.url, PORT: port },
      stdio: 'ignore',
    });
    const url = `http://127.0.0.1:${port}`;
    const isReady = () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(isReady, Boolean);
    return new TwoGateways(platform, second, [platform.url, url]);
  }

  async stop(): Promise<void> {
    const ended = once(this.second, 'exit');
    this.second.kill('SIGTERM');
    await ended;
  }

  /** A member of a team with a password. */
  async member() {
    const { urls, platform } = this;
    const { team, keys } = await createTeam('Two gateways', ['team_owner', 'member'], platform);
    const { email, user_id } = team.members.find(({ role }) => role === 'member') as MemberView;
    const { url } = await succeed<{ url: string }>('POST', '/user/login-link', {
      url: urls[0],
      key: platform.adminKey,
      body: { email },
    });
    await succeed('POST', '/user/link', { url: urls[0], body: { token: url.split('#')[1], password } });
    return { team, owner: keys.team_owner ?? '', email, userId: user_id };
  }

  /** A log-in through one gateway: what its browser holds. */
  async logIn(email: string, url = this.urls[0]): Promise<{ token: string; cookie: string }> {
    const { status, body, headers } = await call<LoggedIn>('POST', '/user/login', { url, body: { email, password } });
    expect(status).toBe(200);
    return { token: body.access_token, cookie: String(headers['set-cookie']).split(';')[0] ?? '' };
  }

  async statusAt(url: string, token: string, path = '/user/profile'): Promise<number> {
    return (await call('GET', path, { url, key: token })).status;
  }

  /** Both gateways have looked at the session just now, and remember it; then it ends, and both refuse it. */
  async expectEnd(token: string, end: () => Promise<unknown>): Promise<void> {
    for (const url of this.urls) expect(await this.statusAt(url, token)).toBe(200);
    await end();
    for (const url of this.urls) {
      await until(
        () => this.statusAt(url, token),
        (status) => status === 401,
        toldWithinMs,
      );
    }
  }
}
