import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createApiKey } from '@atoll/api-keys';
import { call, createTeam, succeed, type MemberView } from './client.js';
import { startPlatform, type RunningPlatform, type Topology } from './running-platform.js';

const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;
const memberLimit = 30;

let platform: RunningPlatform;
beforeAll(async () => {
  platform = await startPlatform(topology, {
    ATOLL_LIMITS: 'on',
    // One an hour after the burst, so that no token comes back while a story runs.
    ATOLL_LIMIT_KEY: '1/3600',
    ATOLL_LIMIT_KEY_BURST: String(memberLimit),
    ATOLL_LIMIT_AUTH_FAILURES: '1/3600',
    ATOLL_LIMIT_AUTH_FAILURES_BURST: '100',
    ...(topology === 'services' && { ATOLL_LIMIT_STORE: 'nats' }),
  });
}, 120_000);
afterAll(() => platform?.stop());

const statusOf = async (path: string, key: string): Promise<number> => (await call('GET', path, { url: platform.url, key })).status;

it('a member who rotates the key six times gets no more calls than without', async () => {
  const { team, keys, ids } = await createTeam('Rotating', ['team_owner'], platform);
  let key = keys.team_owner ?? '';
  const answered = new Map<number, number>();
  for (let rotation = 0; rotation < 6; rotation++) {
    const statuses = await Promise.all(Array.from({ length: memberLimit }, () => statusOf(`/team/${team.id}`, key)));
    for (const status of statuses) answered.set(status, (answered.get(status) ?? 0) + 1);
    // By the operator: a member whose bucket is empty cannot rotate either.
    const path = `/team/${team.id}/members/${ids.team_owner}/api-key`;
    key = (await succeed<MemberView>('POST', path, { url: platform.url, key: platform.adminKey, body: {} })).api_key ?? '';
  }
  expect([...answered].sort()).toEqual([
    [200, memberLimit],
    [429, 5 * memberLimit],
  ]);
});

it('an operator bills 60 customers in a row, and looks at 100 teams 20 at a time', async () => {
  const teams: string[] = [];
  for (let at = 0; at < 60; at++) {
    const body = { name: `Customer ${at}` };
    teams.push((await succeed<{ id: string }>('POST', '/team', { url: platform.url, key: platform.adminKey, body })).id);
  }
  const month = '2026-10-01T00:00:00/2026-11-01T00:00:00/monthly';
  for (const id of teams) expect(await statusOf(`/team-billing/${id}/${month}`, platform.adminKey)).toBe(200);
  for (let round = 0; round < 5; round++) {
    const together = Array.from({ length: 20 }, (_, at) => statusOf(`/team/${teams[(20 * round + at) % teams.length]}`, platform.adminKey));
    expect(new Set(await Promise.all(together))).toEqual(new Set([200]));
  }
});

it('keys that nobody has lock nobody out, not even at their own address', async () => {
  const { team, keys } = await createTeam('Beside a flood', ['viewer'], platform);
  const good = keys.viewer ?? '';
  expect(await statusOf(`/team/${team.id}`, good)).toBe(200);
  const flood = Promise.all(Array.from({ length: 300 }, () => statusOf('/team', createApiKey())));
  for (let count = 0; count < 20; count++) expect(await statusOf(`/team/${team.id}`, good)).toBe(200);
  const answered = Map.groupBy(await flood, (status) => status);
  expect([...answered.keys()].sort()).toEqual([401, 429]);
  expect(answered.get(401)?.length).toBeLessThanOrEqual(100);
});
