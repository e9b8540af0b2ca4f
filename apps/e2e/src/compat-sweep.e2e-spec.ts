import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePort } from '@atoll/testing';
import { call, fresh, freshEmail, succeed, type TeamView } from './client.js';
import { startPlatform, type RunningPlatform, type Topology } from './running-platform.js';

const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;

/** With the limits as they come. */
let platform: RunningPlatform;
let url: string;
let teams: string[];

/** What waits for other services answers 503 after 2 s: a machine that is too busy is asked again, as the answer says. */
async function old(method: string, path: string, body?: object): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    const { status, headers } = await call(method, path, { url, key: platform.adminKey, body });
    const retryAfterS = Number(headers['retry-after'] ?? 0);
    if (status !== 503 || retryAfterS === 0 || tries === 5) return status;
    await delay(retryAfterS * 1_000);
  }
}

/** As many at once as a shop's queue has workers. */
async function inTurn<T>(all: readonly T[], workers: number, work: (one: T) => Promise<number[]>): Promise<Map<number, number>> {
  const waiting = [...all];
  const statuses = new Map<number, number>();
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      for (const status of await work(next)) statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
  return statuses;
}

beforeAll(async () => {
  const port = String(await freePort());
  platform = await startPlatform(topology, {
    ATOLL_LIMITS: 'on',
    ATOLL_COMPAT_PORT: port,
    ...(topology === 'services' && { ATOLL_LIMIT_STORE: 'nats' }),
  });
  url = `http://127.0.0.1:${port}`;
  teams = [];
  for (let at = 0; at < 100; at += 1) {
    const members = [{ email: freshEmail('owner'), name: 'Owner', role: 'team_admin' }];
    const team = await succeed<TeamView>('POST', '/team', { url, key: platform.adminKey, body: { name: fresh('Swept'), members } });
    teams.push(team.id);
  }
}, 120_000);
afterAll(() => platform.stop());

describe('a shop with the operator’s key', () => {
  it('sweeps 100 teams, 20 at a time, and is refused nothing', async () => {
    const statuses = await inTurn(teams, 20, async (id) => [
      await old('GET', `/team/${id}`),
      await old('GET', `/team/${id}/members?page=0&itemsPerPage=50`),
      await old('GET', `/team/${id}/resource-overview`),
      await old('GET', `/gpuaas/pool-subscription?team_id=${id}&page=0&per_page=20`),
      await old('GET', `/instances/unified?team_id=${id}`),
      await old('GET', `/team-billing/summary/${id}/2025-10-01/2025-11-01`),
    ]);
    expect([...statuses]).toEqual([[200, 600]]);
  });

  it('bills 60 services, each by its three reports for the hour, and is refused nothing', async () => {
    const hour = '2025-10-01T10:00/2025-10-01T11:00/hourly';
    const statuses = await inTurn(teams.slice(0, 60), 1, async (id) => [
      await old('GET', `/team-billing/group-by-workspace/${id}/${hour}?timezone=UTC`),
      await old('GET', `/team-billing/gpuaas-pool/${id}/${hour}?timezone=UTC&region_id=all`),
      await old('GET', `/team-billing/shared-storage/${id}/${hour}?timezone=UTC&region_id=all`),
    ]);
    expect([...statuses]).toEqual([[200, 180]]);
  });
});
