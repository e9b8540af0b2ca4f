import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { createDatabase, freePort, startNats, timeoutFactor, type NatsServer, type TestDatabase } from '@atoll/testing';
import { Sealer } from '@atoll/seal';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import pg from 'pg';
import { call, succeed, until } from '../client.js';
import { OwnPlatform, until as untilFound } from '../own-platform.js';
import type { RunningPlatform } from '../running-platform.js';
import { password, toldWithinMs, TwoGateways, type LoggedIn } from './two-gateways.js';

const startTimeoutMs = 240_000 * timeoutFactor;
const own = new OwnPlatform();
/** Of this machine, and nothing else listens there. */
const address = '127.0.0.2';
const natsPassword = 'the password of the stories at NATS';

/** With a user of these stories' own, which may do anything. */
let broker: NatsServer;
let nats: NatsConnection;
let database: TestDatabase;
let client: pg.Client;
let platform: RunningPlatform;
let gateways: TwoGateways;
let urls: readonly [string, string];
beforeAll(async () => {
  broker = await startNats();
  nats = await connect({ servers: broker.url });
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const natsUrl = new URL(broker.url);
  [natsUrl.username, natsUrl.password] = ['atoll', natsPassword];
  const env = {
    DATABASE_URL: database.url,
    NATS_URL: natsUrl.href,
    ATOLL_BUS_SECRET: 'a bus secret of the stories',
    ATOLL_KEY_PEPPER: 'a pepper of the stories',
    ATOLL_SEAL_KEYS: Sealer.createKeys(),
    ATOLL_LIMITS: 'off',
  };
  platform = await own.start('services', { ...env, ATOLL_REPLICAS: 'teams=2', HOST: address });
  gateways = await TwoGateways.start(platform, env);
  ({ urls } = gateways);
});
afterAll(async () => {
  await gateways?.stop();
  await nats?.close();
  await broker?.stop();
  await client?.end();
  await database?.drop();
});

describe('a session ends for every gateway at once', () => {
  it('when its user ends it from another session, through the other gateway', async () => {
    const { email } = await gateways.member();
    const [one, other] = [await gateways.logIn(email, urls[0]), await gateways.logIn(email, urls[1])];
    const { data } = await succeed<{ data: { id: string; current: boolean }[] }>('GET', '/user/sessions', {
      url: urls[1],
      key: other.token,
    });
    const [{ id = '' } = {}] = data.filter(({ current }) => !current);
    expect(data).toHaveLength(2);
    await gateways.expectEnd(one.token, () =>
      succeed('DELETE', `/user/sessions/${id}`, { url: urls[1], key: other.token }),
    );
    expect((await call('POST', '/user/refresh', { url: urls[0], headers: { cookie: one.cookie } })).status).toBe(401);
    for (const url of urls) expect(await gateways.statusAt(url, other.token)).toBe(200);
  });

  it.each([0, 1])('by the operator’s hand, through gateway %i', async (through) => {
    const { email, userId } = await gateways.member();
    const { token, cookie } = await gateways.logIn(email, urls[0]);
    const path = `/user/sessions?user_id=${userId}`;
    await gateways.expectEnd(token, () =>
      succeed('DELETE', path, { url: urls[through] ?? '', key: platform.adminKey }),
    );
    for (const url of urls)
      expect((await call('POST', '/user/refresh', { url, headers: { cookie } })).status).toBe(401);
  });

  it('by log-out, a change of the password, and a refresh token that is used twice', async () => {
    const { email } = await gateways.member();
    const out = await gateways.logIn(email);
    await gateways.expectEnd(out.token, () =>
      succeed('POST', '/user/logout', { url: urls[1], headers: { cookie: out.cookie } }),
    );

    const stolen = await gateways.logIn(email);
    const refresh = (cookie: string, url: string) =>
      call<LoggedIn>('POST', '/user/refresh', { url, headers: { cookie } });
    const next = String((await refresh(stolen.cookie, urls[0])).headers['set-cookie']).split(';')[0] ?? '';
    await refresh(next, urls[1]);
    await gateways.expectEnd(stolen.token, async () =>
      expect((await refresh(stolen.cookie, urls[1])).status).toBe(401),
    );

    const [kept, ended] = [await gateways.logIn(email), await gateways.logIn(email, urls[1])];
    const body = { current: password, new: 'another good phrase' };
    await gateways.expectEnd(ended.token, () =>
      succeed('PUT', '/user/password', { url: urls[0], key: kept.token, body }),
    );
    for (const url of urls) expect(await gateways.statusAt(url, kept.token)).toBe(200);
  });
});

it('a member who is removed is out of the team at every gateway at once, and keeps the session', async () => {
  const { team, owner, email, userId } = await gateways.member();
  const { token } = await gateways.logIn(email);
  for (const url of urls) expect(await gateways.statusAt(url, token, `/team/${team.id}`)).toBe(200);
  await succeed('DELETE', `/team/${team.id}/members/${userId}`, { url: urls[1], key: owner });
  for (const url of urls) {
    await until(
      () => gateways.statusAt(url, token, `/team/${team.id}`),
      (status) => status === 404,
      toldWithinMs,
    );
    expect(await gateways.statusAt(url, token)).toBe(200);
  }
});

it('the platform shows where its NATS is, and not the password at it', () => {
  expect(platform.output()).toContain(`over ${broker.url}`);
  for (const shown of [natsPassword, encodeURI(natsPassword)]) expect(platform.output()).not.toContain(shown);
});

it('a forged event of a team with the greatest revision there is changes nothing and freezes nobody', async () => {
  const access = { url: platform.url, key: platform.adminKey };
  const untilKnownAs = async (name: string) => {
    for (const service of ['billing', 'gpuaas']) {
      while ((await client.query(`SELECT FROM ${service}.team WHERE name = $1`, [name])).rowCount === 0)
        await delay(20);
    }
  };
  const { id: team_id } = await succeed<{ id: string }>('POST', '/team', { ...access, body: { name: 'Before' } });
  await untilKnownAs('Before');
  const payload = {
    team_id,
    revision: Number.MAX_SAFE_INTEGER,
    name: 'Forged',
    is_suspended: true,
    status: 'active',
    workspaces: [],
  };
  const forged = {
    id: randomUUID(),
    name: 'teams.team_changed',
    payload,
    occurredAt: new Date().toISOString(),
    publisher: 'teams',
  };
  await nats.request('events.teams.team_changed', JSON.stringify(forged), { timeout: 60_000 });
  for (const service of ['billing', 'gpuaas']) {
    const refused = new RegExp(
      `^(?=.*"service":"${service}").*events\\.teams\\.team_changed is ignored: no ATOLL_BUS_SECRET`,
      'm',
    );
    while (!refused.test(platform.output())) await delay(20);
  }
  await succeed('PUT', `/team/${team_id}`, { ...access, body: { name: 'After' } });
  await untilKnownAs('After');
});

describe('a broker that loses what it holds', () => {
  const resources = 300;
  const wipes = 6;
  /**
   * Deletes the stream of events with all that it holds. A busy machine takes longer than the second that a request has
   * by default.
   */
  const wipe = () => nats.request('$JS.API.STREAM.DELETE.ATOLL_EVENTS', '', { timeout: 60_000 });
  const [from, to] = ['2025-10-01T00:00:00', '2025-11-01T00:00:00'];

  /** One hour of one GPU, as two events of gpuaas in its outbox. */
  async function use(resource: number, fact: object): Promise<void> {
    for (const [time, quantity] of [
      [`${from}.000Z`, '1'],
      ['2025-10-01T01:00:00.000Z', '0'],
    ]) {
      const facts = [{ ...fact, id: randomUUID(), resource_id: `gpuaas_pool:lost-${resource}`, time, quantity }];
      await client.query(`INSERT INTO gpuaas.outbox (id, event_name, payload) VALUES ($1, 'gpuaas.usage_told', $2)`, [
        randomUUID(),
        JSON.stringify({ facts }),
      ]);
      await client.query('NOTIFY "outbox.gpuaas"');
    }
  }

  it('under load leaves every bill exact in the end', async () => {
    const access = { url: platform.url, key: platform.adminKey };
    const team = await succeed<{ id: string; workspaces: { id: string }[] }>('POST', '/team', {
      ...access,
      body: { name: 'Billed' },
    });
    const sku = 'gpu.lost';
    await succeed('POST', '/price', {
      ...access,
      body: { sku, unit: 'vgpu', unit_price: '1', valid_from: '2025-01-01T00:00:00Z', force: true },
    });
    const fact = { kind: 'gpuaas_pool', sku, team_id: team.id, workspace_id: team.workspaces[0]?.id, pool_id: '1' };
    for (let resource = 0; resource < resources; resource += 1) {
      await use(resource, fact);
      if (resource % (resources / wipes) === 0) await wipe();
      await delay(10);
    }
    // Nothing is published after this one by which a consumer would see that it misses something.
    await wipe();
    const bill = () =>
      succeed<{ total_cost: string }>('GET', `/team-billing/${team.id}/${from}/${to}/monthly/utc`, access);
    while (Number((await bill()).total_cost) !== resources) await delay(250);
  });
});

/** The latest process of that name. */
const pidOf = (name: string) =>
  [...platform.output().matchAll(new RegExp(`^${name}: process (\\d+)$`, 'gm'))].at(-1)?.[1];

/** The latest process of that name, once it says that it is ready. Its log comes later than its answers. */
const ready = (name: string, replaced?: string) =>
  untilFound(() => {
    const pid = pidOf(name);
    const isReady = pid !== replaced && new RegExp(`"pid":${pid},.*"msg":"ready"`).test(platform.output());
    return Promise.resolve(isReady ? pid : undefined);
  });

/** Whether the start says that the process has ended. */
const hasEnded = (name: string, pid: string | undefined) =>
  platform.output().split(`${name}: process ${pid}\n`)[1]?.includes(`${name} ended (`);

/** What the platform logged of the request that was answered so. */
const logOf = (answer: string) => {
  const [, id] = /"request_id":"([^"]+)"/.exec(answer) ?? [];
  return platform
    .output()
    .split('\n')
    .filter((line) => id !== undefined && line.includes(id));
};

describe('services over NATS', () => {
  it('that listen on one address alone are said to be ready there', async () => {
    expect(new URL(platform.url).hostname).toBe(address);
    expect(platform.output()).toContain(`Console  ${platform.url}/`);
    expect(platform.output()).toContain(`API      ${platform.url}/api`);
    expect((await fetch(`${platform.url}/livez`)).status).toBe(200);
  });

  it('answer 503 at once while all replicas of one of them are dead, and go on when one is back', async () => {
    const team = await own.createTeam();
    const killed = new Map<string, string | undefined>();
    // NATS may learn of the death only after a call, and a process that starts again may take one: then they are killed
    // once more.
    const refused = await untilFound(async () => {
      for (const name of ['teams', 'teams 2']) {
        const pid = pidOf(name);
        if (pid !== killed.get(name)) process.kill(Number(pid), 'SIGKILL');
        killed.set(name, pid);
      }
      for (const [name, pid] of killed) await untilFound(() => Promise.resolve(hasEnded(name, pid) || undefined));
      const answer = await own.get(`/team/${team}`);
      return answer.status === 503 ? answer : undefined;
    });
    expect(await refused.json()).toMatchObject({ code: 'unavailable' });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);

    const answered = await untilFound(async () => {
      const answer = await own.get(`/team/${team}`);
      return answer.status === 200 ? answer : undefined;
    });
    expect(await answered.json()).toMatchObject({ name: 'Survivors' });
    for (const [name, pid] of killed) await ready(name, pid);
  });

  it(
    'bill every fact once that is told, and told again, while billing dies in the middle',
    async () => {
      const team = await own.createTeam();
      const [workspace] = ((await (await own.get(`/team/${team}`)).json()) as { workspaces: { id: string }[] })
        .workspaces;
      const batchOf = (batch: number) => ({
        events: Array.from({ length: 100 }, (_, minute) => ({
          source: 'meter',
          id: `${batch} ${minute}`,
          time: new Date(Date.UTC(2026, 0, 1 + batch, 0, minute)).toISOString(),
          resource_id: 'vm:1',
          kind: 'vm',
          sku: 'vm.small',
          quantity: minute === 99 ? 0 : 1 + (minute % 2),
          team_id: team,
          workspace_id: workspace?.id,
        })),
      });
      let killed = 0;
      for (let batch = 0; batch < 9; batch += 1) {
        const body = JSON.stringify(batchOf(batch));
        const told = untilFound(async () =>
          (await own.post('/usage-events', body)).status === 200 ? true : undefined,
        );
        if (batch % 4 === 2) {
          process.kill(Number(pidOf('billing')), 'SIGKILL');
          killed += 1;
        }
        await told;
        // The first answer may have come before the process died.
        await untilFound(async () => ((await own.post('/usage-events', body)).status === 200 ? true : undefined));
      }
      expect(killed).toBe(2);
      const report = await own.get(`/team-billing/${team}/2026-01-01T00:00:00/2026-02-01T00:00:00/monthly/utc`);
      // 99 minutes of each batch, every other one with two.
      expect(await report.json()).toMatchObject({ unpriced: [{ sku: 'vm.small', unit_hours: (9 * (99 + 49)) / 60 }] });
    },
    2 * startTimeoutMs,
  );

  it('lose no request while one of two replicas is replaced under load', async () => {
    const team = await own.createTeam();
    const pids = new Map([
      ['teams', await ready('teams')],
      ['teams 2', await ready('teams 2')],
    ]);
    const answers = new Map<string, number>();
    const ask = async () => {
      const answer = await own.get(`/team/${team}`);
      const told = answer.status === 200 ? '200' : await answer.text();
      answers.set(told, (answers.get(told) ?? 0) + 1);
    };
    const askAtOnce = (times: number) => Promise.all(Array.from({ length: times }, ask));
    let loading = true;
    const load = (async () => {
      for (; loading; await delay(20)) await askAtOnce(4);
    })();
    for (const [name, pid] of pids) {
      // In the middle of more requests than those of the load.
      const asked = askAtOnce(16);
      process.kill(Number(pid), 'SIGTERM');
      await asked;
      // The next one goes when its successor answers.
      await ready(name, pid);
    }
    loading = false;
    await load;
    expect([...answers.keys()].flatMap((told) => [told, ...logOf(told)])).toEqual(['200']);
    expect(answers.get('200')).toBeGreaterThan(100);
  });

  it.each(['gateway', 'teams'])(
    'end by themselves at a signal while they wait for their broker in the middle of a start: %s',
    async (name) => {
      const database = await createDatabase();
      const env = {
        ...process.env,
        DATABASE_URL: database.url,
        NATS_URL: `nats://127.0.0.1:${await freePort()}`,
        ATOLL_BUS_SECRET: 'a bus secret of the stories',
        ATOLL_KEY_PEPPER: 'a pepper of the stories',
        ATOLL_SEAL_KEYS: Sealer.createKeys(),
        PORT: '0',
      };
      const starting = spawn(process.execPath, [`dist/apps/${name}/src/main.js`], {
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const ended = once(starting, 'exit');
      let output = '';
      for await (const chunk of starting.stdout.setEncoding('utf8')) {
        output += chunk;
        if (output.includes('Cannot connect to NATS')) break;
      }
      starting.kill('SIGTERM');
      // By its own hand, and not by that of the system, which never kills the first process of a container for lack of
      // a handler.
      expect(await ended).toEqual([0, null]);
      await database.drop();
    },
  );
});
