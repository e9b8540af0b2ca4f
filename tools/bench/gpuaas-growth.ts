import { join } from 'node:path';
import { createApiKey } from '@atoll/api-keys';
import type pg from 'pg';
import { createDatabase } from './databases.js';
import { addEnded, addIdleGpus, addPools, generateSubscriptions, type Ending } from './gpuaas-data.js';
import { inTurn, makePool, makeSubscribers, until } from './gpuaas-inventory.js';
import { Installation } from './installation.js';
import { mediansInTurn } from './measure.js';
import { withClient } from './with-client.js';

/** Milliseconds of one operation, by the number of things it works on. */
export interface Growth {
  name: string;
  points: { size: number; ms: number }[];
  /** k of ms ~ size^k, by least squares over the logarithms. */
  exponent: number;
}

const callers = 50;

/** What each operation takes with ever more of what it works on. Each size has a database of its own. */
export async function measureGrowth(
  serverUrl: string,
  folder: string,
  sizes: readonly number[],
  calls: number,
): Promise<Growth[]> {
  const points = new Map<string, { size: number; ms: number }[]>();
  for (const size of sizes) {
    const url = await createDatabase(serverUrl, 'bench_growth');
    const platform = await Installation.start(url, join(folder, `growth-${size}`), createApiKey(), callers);
    const measured = await withClient(url, (client) => measureSize(platform, client, size, calls));
    await platform.stop();
    for (const [name, point] of measured) points.set(name, [...(points.get(name) ?? []), point]);
  }
  return [...points].map(([name, all]) => ({ name, points: all, exponent: exponentOf(all) }));
}

/** A pool has at most so many GPUs. */
const mostGpus = 4_000;

async function measureSize(
  platform: Installation,
  client: pg.Client,
  size: number,
  calls: number,
): Promise<Map<string, { size: number; ms: number }>> {
  const { id: teamId } = await platform.send<{ id: string }>('POST', '/team', { name: 'Growing' });
  await until(client, `SELECT count(*) > 0 AS done FROM gpuaas.team WHERE revision > 0`);
  await generateSubscriptions(client, { subscriptions: size, teams: 1 });
  await client.query('UPDATE gpuaas.subscription SET team_id = $1', [teamId]);
  await addPools(client, 100, size);
  const gpus = Math.min(size, mostGpus);
  const gpuIds = await addIdleGpus(client, gpus);
  await client.query('VACUUM ANALYZE');
  const create = await timed(() => platform.send('POST', '/gpuaas/pool/create', poolOf(gpuIds)));
  const atRest = await timed(() =>
    until(client, `SELECT NOT EXISTS (SELECT FROM gpuaas.gpu WHERE state <> 'spatial') AS done`),
  );
  const list = `/gpuaas/pool-subscription?team_id=${teamId}&metric_window=last_1h`;
  const offers = `/gpuaas/available-pools?team_id=${teamId}&limit=100`;
  const medians = await mediansInTurn(
    { list: () => platform.call('GET', list), offers: () => platform.call('GET', offers) },
    calls,
  );
  const crowd = await timed(() => inTurn(callers, callers, () => platform.call('GET', offers)));
  return new Map([
    ['list all subscriptions of a team', { size, ms: medians.list }],
    ['offers of 100 pools, by their GPUs', { size, ms: medians.offers }],
    [`offers of 100 pools, ${callers} callers at once`, { size, ms: crowd }],
    ['create a pool, by its GPUs', { size: gpus, ms: create }],
    ['until its GPUs are at rest', { size: gpus, ms: create + atRest }],
  ]);
}

export interface EndedFigure {
  name: string;
  fewMs: number;
  manyMs: number;
}

/** What the same operations take beside no ended workload and subscription, and beside so many of each. */
export async function measureBesideEnded(
  serverUrl: string,
  folder: string,
  ended: number,
  calls: number,
): Promise<EndedFigure[]> {
  const url = await createDatabase(serverUrl, 'bench_ended');
  const platform = await Installation.start(url, join(folder, 'ended'), createApiKey(), 1);
  const figures = await withClient(url, async (client) => {
    const held = await makeOvercommitted(platform, client);
    const candidates = {
      'list the live workloads of a team': () => platform.call('GET', `/gpuaas/workload?team_id=${held.teamId}`),
      'list the live workloads of a subscription': () =>
        platform.call('GET', `/gpuaas/workload?team_id=${held.teamId}&subscription_id=${held.subscriptionId}`),
      'list the live subscriptions of a team': () =>
        platform.call('GET', `/gpuaas/pool-subscription?team_id=${held.teamId}`),
      'offers of a pool with overcommit': () => platform.call('GET', `/gpuaas/available-pools?team_id=${held.teamId}`),
      'start and stop a workload': () => startAndStop(platform, client, held.subscriptionId),
      'subscribe with overcommit, and give back': () => subscribeAndGiveBack(platform, client, held),
    };
    const few = await mediansInTurn(candidates, calls);
    await addEnded(client, held, ended);
    const many = await mediansInTurn(candidates, calls);
    return Object.entries(few).map(([name, fewMs]) => ({ name, fewMs, manyMs: many[name as keyof typeof many] }));
  });
  await platform.stop();
  return figures;
}

/** A subscription to a pool with overcommit, which has room for more. */
async function makeOvercommitted(platform: Installation, client: pg.Client): Promise<Ending> {
  const poolId = await makePool(platform, client, 2, {
    sharing_mode: 'Spatial',
    mechanism: 'mps',
    replicas: 2,
    overcommit: 4,
  });
  const [{ team_id: teamId, workspace_id: workspaceId } = { team_id: '', workspace_id: '' }] = await makeSubscribers(
    platform,
    client,
    1,
  );
  const asked = { team_id: teamId, pool_id: poolId, vgpus: 4 };
  const { subscription_id } = await platform.send<{ subscription_id: string }>('POST', '/gpuaas/pool/subscribe', asked);
  await until(
    client,
    `SELECT state = 'active' AS done FROM gpuaas.subscription WHERE subscription_id = ${subscription_id}`,
  );
  return { teamId, workspaceId, poolId, subscriptionId: subscription_id };
}

async function startAndStop(platform: Installation, client: pg.Client, subscription_id: string): Promise<void> {
  const { workload_id } = await platform.send<{ workload_id: string }>('POST', '/gpuaas/workload', {
    subscription_id,
    name: 'job',
  });
  await platform.call('DELETE', `/gpuaas/workload/${workload_id}`);
  await until(client, `SELECT state = 'stopped' AS done FROM gpuaas.workload WHERE workload_id = ${workload_id}`, 2);
}

async function subscribeAndGiveBack(
  platform: Installation,
  client: pg.Client,
  held: { teamId: string; poolId: string },
): Promise<void> {
  const asked = { team_id: held.teamId, pool_id: held.poolId, vgpus: 1 };
  const { subscription_id } = await platform.send<{ subscription_id: string }>('POST', '/gpuaas/pool/subscribe', asked);
  await platform.send('POST', '/gpuaas/pool/unsubscribe', { subscription_id });
  await until(
    client,
    `SELECT state = 'unsubscribed' AS done FROM gpuaas.subscription WHERE subscription_id = ${subscription_id}`,
    2,
  );
}

function poolOf(gpu_ids: string[]): object {
  const terms = { sharing_mode: 'Spatial', mechanism: 'mig', profiles: ['1g.10gb'] };
  return { gpuaas_id: '1', pool_name: 'grown', gpu_ids, ...terms };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

export function exponentOf(points: readonly { size: number; ms: number }[]): number {
  const logs = points.map(({ size, ms }) => ({ x: Math.log(size), y: Math.log(ms) }));
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanX, meanY] = [mean(logs.map(({ x }) => x)), mean(logs.map(({ y }) => y))];
  const slope = logs.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0);
  return slope / logs.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0);
}
