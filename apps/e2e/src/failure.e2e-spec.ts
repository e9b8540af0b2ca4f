import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiKey } from '@atoll/api-keys';
import { startPostgres } from '@atoll/testing';
import { startPlatform, type RunningPlatform } from './running-platform.js';

/** These stories kill what they run on, so each starts a platform of its own. */
const startTimeoutMs = 60_000;
let platform: RunningPlatform | undefined;
let folder: string | undefined;

afterEach(async () => {
  await platform?.stop();
  platform = undefined;
  if (folder) rmSync(folder, { recursive: true, force: true });
  folder = undefined;
});

function get(path: string): Promise<Response> {
  return fetch(`${platform?.url}/api${path}`, { headers: { authorization: `Bearer ${platform?.adminKey}` } });
}

function post(path: string, body: string): Promise<Response> {
  const headers = { authorization: `Bearer ${platform?.adminKey}`, 'content-type': 'application/json' };
  return fetch(`${platform?.url}/api${path}`, { method: 'POST', headers, body });
}

async function createTeam(): Promise<string> {
  const response = await fetch(`${platform?.url}/api/team`, {
    method: 'POST',
    headers: { authorization: `Bearer ${platform?.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Survivors' }),
  });
  return ((await response.json()) as { id: string }).id;
}

async function until<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await attempt();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe('one process', () => {
  it(
    'that is killed outright finds everything again at its next start',
    async () => {
      folder = mkdtempSync(join(tmpdir(), 'atoll-e2e-'));
      const env = { ATOLL_DATA_DIR: folder, ATOLL_ADMIN_KEY: createApiKey() };
      const first = await startPlatform('one-process', env);
      platform = first;
      const team = await createTeam();
      first.process.kill('SIGKILL');
      await once(first.process, 'exit');

      platform = await startPlatform('one-process', env);
      const found = await get(`/team/${team}`);
      expect(found.status).toBe(200);
      expect(await found.json()).toMatchObject({ id: team, name: 'Survivors' });
    },
    startTimeoutMs,
  );

  it(
    'does not start twice on one data folder, and says who holds it',
    async () => {
      folder = mkdtempSync(join(tmpdir(), 'atoll-e2e-'));
      platform = await startPlatform('one-process', { ATOLL_DATA_DIR: folder });
      await expect(startPlatform('one-process', { ATOLL_DATA_DIR: folder })).rejects.toThrow(
        `is in use by process ${platform.process.pid}`,
      );
      expect((await get('/user/profile')).status).toBe(200);
    },
    startTimeoutMs,
  );

  it(
    'limits its callers, and says so in the words of the reference',
    async () => {
      platform = await startPlatform('one-process', { ATOLL_LIMITS: 'on', ATOLL_LIMIT_ADMIN: '5/60' });
      const refused = await until(async () => {
        const answer = await get('/user/profile');
        return answer.status === 429 ? answer : undefined;
      });
      expect(await refused.json()).toMatchObject({
        code: 'too_many_requests',
        detail: 'Too many requests. Please try again later.',
        message: 'Too many requests. Please try again later.',
      });
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(refused.headers.get('ratelimit')).toBeTruthy();
      expect(refused.headers.get('ratelimit-policy')).toBeTruthy();
    },
    startTimeoutMs,
  );
});

describe('a PostgreSQL that is frozen, then killed', () => {
  it(
    'is told as 503 before anyone stops waiting, and forgotten when it is back',
    async () => {
      const postgres = await startPostgres();
      platform = await startPlatform('one-process', { DATABASE_URL: postgres.url });
      const team = await createTeam();
      const expectOutage = async () => {
        const refused = await get(`/team/${team}`);
        expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([503, 'unavailable']);
        expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
        expect((await fetch(`${platform?.url}/readyz`)).status).toBe(503);
        expect((await fetch(`${platform?.url}/livez`)).status).toBe(200);
      };
      const expectRecovery = () => until(async () => ((await get(`/team/${team}`)).status === 200 ? true : undefined));

      postgres.pause();
      await expectOutage();
      postgres.resume();
      await expectRecovery();
      await postgres.kill();
      await expectOutage();
      await postgres.restart();
      await expectRecovery();

      await platform.stop();
      platform = undefined;
      await postgres.stop();
    },
    startTimeoutMs,
  );
});

describe('services over NATS', () => {
  it(
    'answer 503 at once while one of them is dead, and go on when it is back',
    async () => {
      platform = await startPlatform('services');
      const team = await createTeam();
      const [, pid] = /teams: process (\d+)/.exec(platform.output()) ?? [];
      process.kill(Number(pid), 'SIGKILL');

      const refused = await until(async () => {
        const answer = await get(`/team/${team}`);
        return answer.status === 200 ? undefined : answer;
      });
      expect(refused.status).toBe(503);
      expect(await refused.json()).toMatchObject({ code: 'unavailable' });
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);

      const answered = await until(async () => {
        const answer = await get(`/team/${team}`);
        return answer.status === 200 ? answer : undefined;
      });
      expect(await answered.json()).toMatchObject({ name: 'Survivors' });
    },
    startTimeoutMs,
  );

  it(
    'bill every fact once that is told, and told again, while billing dies in the middle',
    async () => {
      const started = await startPlatform('services');
      platform = started;
      const team = await createTeam();
      const [workspace] = ((await (await get(`/team/${team}`)).json()) as { workspaces: { id: string }[] }).workspaces;
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
        const told = until(async () => ((await post('/usage-events', body)).status === 200 ? true : undefined));
        if (batch % 4 === 2) {
          const pid = [...started.output().matchAll(/^billing: process (\d+)$/gm)].at(-1)?.[1];
          process.kill(Number(pid), 'SIGKILL');
          killed += 1;
        }
        await told;
        expect((await post('/usage-events', body)).status).toBe(200);
      }
      expect(killed).toBe(2);
      const report = await get(`/team-billing/${team}/2026-01-01T00:00:00/2026-02-01T00:00:00/monthly/utc`);
      // 99 minutes of each batch, every other one with two.
      expect(await report.json()).toMatchObject({ unpriced: [{ sku: 'vm.small', unit_hours: (9 * (99 + 49)) / 60 }] });
    },
    2 * startTimeoutMs,
  );

  it(
    'lose no request while one of two replicas is replaced under load',
    async () => {
      const started = await startPlatform('services', { ATOLL_REPLICAS: 'teams=2' });
      platform = started;
      /** The latest process of that name, once it says that it is ready. Its log comes later than its answers. */
      const ready = (name: string, replaced?: string) =>
        until(() => {
          const pid = [...started.output().matchAll(new RegExp(`^${name}: process (\\d+)$`, 'gm'))].at(-1)?.[1];
          const isReady = pid !== replaced && new RegExp(`"pid":${pid},.*"msg":"ready"`).test(started.output());
          return Promise.resolve(isReady ? pid : undefined);
        });
      const team = await createTeam();
      const pids = new Map([
        ['teams', await ready('teams')],
        ['teams 2', await ready('teams 2')],
      ]);
      const answers = new Map<string, number>();
      let loading = true;
      const load = Promise.all(
        Array.from({ length: 16 }, async () => {
          while (loading) {
            const answer = await get(`/team/${team}`);
            const told = answer.status === 200 ? '200' : await answer.text();
            answers.set(told, (answers.get(told) ?? 0) + 1);
          }
        }),
      );
      for (const [name, pid] of pids) {
        process.kill(Number(pid), 'SIGTERM');
        // The next one goes when its successor answers.
        await ready(name, pid);
      }
      loading = false;
      await load;
      expect([...answers.keys()]).toEqual(['200']);
      expect(answers.get('200')).toBeGreaterThan(100);
    },
    startTimeoutMs,
  );
});
