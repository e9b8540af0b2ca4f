import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import pg from 'pg';
import { createDatabase, timeoutFactor } from '@atoll/testing';
import { startPlatform, type RunningPlatform } from '../running-platform.js';

const timeoutMs = 120_000 * timeoutFactor;

/** What other services tell: here a line in the outbox stands for them. */
describe('what others tell of a team', () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let platform: RunningPlatform;
  let client: pg.Client;

  beforeAll(async () => {
    database = await createDatabase();
    platform = await startPlatform('one-process', { DATABASE_URL: database.url });
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
  }, timeoutMs);
  afterAll(async () => {
    await client.end();
    await platform.stop();
    await database.drop();
  });

  async function ask<Body>(method: string, path: string, body?: object): Promise<Body> {
    const response = await fetch(`${platform.url}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${platform.adminKey}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await response.json()) as Body;
  }

  const tell = (payload: object) =>
    client.query(`INSERT INTO gpuaas.outbox (id, event_name, payload) VALUES ($1, 'gpuaas.team_capacity_changed', $2)`, [
      randomUUID(),
      JSON.stringify(payload),
    ]);

  async function run(...args: string[]): Promise<{ code: number; output: string }> {
    const env = { ...process.env, DATABASE_URL: database.url, ATOLL_KEY_PEPPER: 'a pepper of the spec' };
    const child = spawn(process.execPath, ['dist/apps/platform/src/dead-letters.js', ...args], { env });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    return { code, output };
  }

  async function until(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  it(
    'shows in the team and in the profile of its people',
    async () => {
      const { id } = await ask<{ id: string }>('POST', '/team', { name: 'Holders' });
      await tell({ team_id: id, revision: 2, gpu_ids: [7, 8, 9], has_pool_subscription: true });
      await tell({ team_id: id, revision: 1, gpu_ids: [], has_pool_subscription: false });
      await until(async () => (await ask<{ has_pool_subscription: boolean }>('GET', `/team/${id}`)).has_pool_subscription);
      expect(await ask('GET', '/user/profile')).toMatchObject({ card_count: 3 });
      expect(await ask('DELETE', `/team/${id}`)).toMatchObject({ status: 409, code: 'conflict' });
    },
    timeoutMs,
  );

  it(
    'waits among the dead letters where it cannot be read, and is handled by hand once that is mended',
    async () => {
      const { id } = await ask<{ id: string }>('POST', '/team', { name: 'Patient' });
      await tell({ team_id: id, revision: 0, gpu_ids: [7], has_pool_subscription: true });
      const figures = async () => (await fetch(`${platform.url}/metrics`)).text();
      await until(async () => (await figures()).includes('atoll_dead_letters{service="teams"} 1'));
      const { output } = await run();
      const [, letter = ''] = /^teams (\S+) gpuaas\.team_capacity_changed → .*revision/m.exec(output) ?? [];
      expect(await run('retry', 'teams', letter)).toMatchObject({ code: 1, output: expect.stringContaining('failed again') });

      await client.query(`UPDATE teams.dead_letter SET payload = payload || '{"revision": 1}'`);
      expect(await run('retry', 'teams', letter)).toEqual({ code: 0, output: 'Handled.\n' });
      expect(await ask('GET', `/team/${id}`)).toMatchObject({ has_pool_subscription: true });
      expect(await run()).toEqual({ code: 0, output: expect.stringMatching(/^(\w+: none\n){3,}$/) });
      await until(async () => (await figures()).includes('atoll_dead_letters{service="teams"} 0'));
    },
    timeoutMs,
  );
});
