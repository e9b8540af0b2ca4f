import { expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { createDatabase, timeoutFactor } from '@atoll/testing';
import pg from 'pg';
import { startPlatform, type Topology } from './running-platform.js';

const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;
/** Longer than PostgreSQL leaves a transaction idle (20 s), and between processes than JetStream waits for an acknowledgement (30 s). */
const frozenForMs = topology === 'services' ? 40_000 : 25_000;

it(
  'a service whose process is frozen for longer than anything waits for it takes every event once it goes on, and none becomes a dead letter',
  async () => {
    const database = await createDatabase();
    const platform = await startPlatform(topology, { DATABASE_URL: database.url });
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const createTeam = async (name: string): Promise<boolean> => {
      const answer = await fetch(`${platform.url}/api/team`, {
        method: 'POST',
        headers: { authorization: `Bearer ${platform.adminKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name }),
      });
      return answer.status === 201;
    };
    const count = async (sql: string) =>
      (await client.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${sql}`)).rows[0]?.count;
    // All of the platform where it is one process, else the service that consumes.
    const pid = topology === 'services' ? Number(/billing: process (\d+)/.exec(platform.output())?.[1]) : platform.process.pid!;
    try {
      for (let at = 0; at < 40; at += 1) expect(await createTeam(`Before ${at}`)).toBe(true);
      process.kill(pid, 'SIGSTOP');
      for (let at = 0; topology === 'services' && at < 40; at += 1) expect(await createTeam(`Meanwhile ${at}`)).toBe(true);
      await delay(frozenForMs);
      process.kill(pid, 'SIGCONT');
      const teams = await count('teams.team');
      for (const service of ['billing', 'gpuaas']) {
        while ((await count(`${service}.team WHERE revision > 0`)) !== teams) await delay(50);
      }
      for (const service of ['teams', 'billing', 'gpuaas']) expect(await count(`${service}.dead_letter`)).toBe(0);
    } finally {
      process.kill(pid, 'SIGCONT');
      await client.end();
      await platform.stop();
      await database.drop();
    }
  },
  180_000 * timeoutFactor,
);
