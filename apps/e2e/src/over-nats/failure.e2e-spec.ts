import { beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Sealer } from '@atoll/seal';
import { createDatabase, freePort, timeoutFactor } from '@atoll/testing';
import { OwnPlatform, until } from '../own-platform.js';
import type { RunningPlatform } from '../running-platform.js';

const startTimeoutMs = 240_000 * timeoutFactor;
const own = new OwnPlatform('a file');
let started: RunningPlatform;

/** The latest process of that name. */
const pidOf = (name: string) =>
  [...started.output().matchAll(new RegExp(`^${name}: process (\\d+)$`, 'gm'))].at(-1)?.[1];

/** The latest process of that name, once it says that it is ready. Its log comes later than its answers. */
const ready = (name: string, replaced?: string) =>
  until(() => {
    const pid = pidOf(name);
    const isReady = pid !== replaced && new RegExp(`"pid":${pid},.*"msg":"ready"`).test(started.output());
    return Promise.resolve(isReady ? pid : undefined);
  });

/** Whether the start says that the process has ended. */
const hasEnded = (name: string, pid: string | undefined) =>
  started.output().split(`${name}: process ${pid}\n`)[1]?.includes(`${name} ended (`);

/** What the platform logged of the request that was answered so. */
const logOf = (answer: string) => {
  const [, id] = /"request_id":"([^"]+)"/.exec(answer) ?? [];
  return started
    .output()
    .split('\n')
    .filter((line) => id !== undefined && line.includes(id));
};

/** Of this machine, and nothing else listens there. */
const address = '127.0.0.2';

beforeAll(async () => {
  started = await own.start('services', { ATOLL_REPLICAS: 'teams=2', HOST: address });
});

describe('services over NATS', () => {
  it('that listen on one address alone are said to be ready there', async () => {
    expect(new URL(started.url).hostname).toBe(address);
    expect(started.output()).toContain(`Console  ${started.url}/`);
    expect(started.output()).toContain(`API      ${started.url}/api`);
    expect((await fetch(`${started.url}/livez`)).status).toBe(200);
  });

  it('answer 503 at once while all replicas of one of them are dead, and go on when one is back', async () => {
    const team = await own.createTeam();
    const killed = new Map<string, string | undefined>();
    // NATS may learn of the death only after a call, and a process that starts again may take one: then they are killed
    // once more.
    const refused = await until(async () => {
      for (const name of ['teams', 'teams 2']) {
        const pid = pidOf(name);
        if (pid !== killed.get(name)) process.kill(Number(pid), 'SIGKILL');
        killed.set(name, pid);
      }
      for (const [name, pid] of killed) await until(() => Promise.resolve(hasEnded(name, pid) || undefined));
      const answer = await own.get(`/team/${team}`);
      return answer.status === 503 ? answer : undefined;
    });
    expect(await refused.json()).toMatchObject({ code: 'unavailable' });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);

    const answered = await until(async () => {
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
        const told = until(async () => ((await own.post('/usage-events', body)).status === 200 ? true : undefined));
        if (batch % 4 === 2) {
          process.kill(Number(pidOf('billing')), 'SIGKILL');
          killed += 1;
        }
        await told;
        // The first answer may have come before the process died.
        await until(async () => ((await own.post('/usage-events', body)).status === 200 ? true : undefined));
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
