import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { podWorkloads, subscriptions } from '@atoll/contracts/gpuaas';
import { newId, Writers } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { DataSource } from 'typeorm';
import { GpuaasFixture } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

/** More than the service has connections. */
const callers = 60;

/** Has `many` asked while the pool is locked by another process, another team's call answered meanwhile, and waits for the answers. */
async function whileLocked<T>(poolId: string, many: () => Promise<T>[]): Promise<T[]> {
  const other = await fixture.team();
  const holder = fixture.get(DataSource).createQueryRunner();
  await holder.connect();
  await holder.startTransaction();
  await holder.query('SELECT FROM pool WHERE pool_id = $1 FOR UPDATE', [poolId]);
  const asked = many();
  try {
    expect((await fixture.call(subscriptions.list, { team_id: other.team_id }, other.member)).data).toEqual([]);
    const waiting = `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    const [row] = await fixture.query<{ count: number }>(waiting);
    expect(row?.count).toBeLessThanOrEqual(1);
  } finally {
    await holder.commitTransaction();
    await holder.release();
  }
  return Promise.all(asked);
}

const all = <T>(work: (caller: number) => T): T[] => Array.from({ length: callers }, (_, caller) => work(caller));
const mps = { mechanism: 'mps', sharing_mode: 'Spatial' } as const;

it('while many subscriptions under idempotency keys wait for one pool, calls of others are answered; then all are made, once each', async () => {
  const team = await fixture.team();
  const { pool_id } = await fixture.pool({ ...mps, replicas: 40 }, { count: 2 });
  const ask = (caller: number) =>
    fixture.call(subscriptions.subscribe, { team_id: team.team_id, pool_id, vgpus: 1 }, team.member, {
      key: `key ${caller}`,
      fingerprint: 'f',
    });
  const made = await whileLocked(pool_id, () => all(ask));
  expect(new Set(made.map(({ subscription_id }) => subscription_id)).size).toBe(callers);
  expect(await Promise.all(all(ask))).toEqual(made);
});

it('while many subscriptions to one pool wait to grow, calls of others are answered; then all grow', async () => {
  const team = await fixture.team();
  const { pool_id } = await fixture.pool({ ...mps, replicas: 40 }, { count: 4 });
  const held = await Promise.all(all(() => fixture.subscribe(team, { pool_id })));
  await fixture.settle();
  const grown = await whileLocked(pool_id, () =>
    held.map(({ subscription_id }) => fixture.call(subscriptions.resize, { subscription_id, vgpus: 2 }, team.member)),
  );
  expect(grown.map(({ resize }) => resize?.vgpus)).toEqual(all(() => 2));
});

it('while many workloads wait for slices of one pool that are sold more than once, calls of others are answered; then all start', async () => {
  const team = await fixture.team();
  const { pool_id } = await fixture.pool({ ...mps, replicas: 40, overcommit: 2 }, { count: 2 });
  const { subscription_id } = await fixture.subscribe(team, { pool_id, vgpus: callers });
  await fixture.settle();
  const started = await whileLocked(pool_id, () => all(() => fixture.start(team, { subscription_id })));
  expect(new Set(started.map(({ workload_id }) => workload_id)).size).toBe(callers);
});

it('a workload does not wait for all pods of another team that start in one pool before it', async () => {
  const [team, other] = [await fixture.team(), await fixture.team()];
  const { pool_id } = await fixture.pool({ ...mps, replicas: 40, overcommit: 2 }, { count: 2 });
  const { subscription_id } = await fixture.subscribe(team, { pool_id, vgpus: callers });
  const own = await fixture.subscribe(other, { pool_id });
  await fixture.settle();
  const { lanes } = fixture.get(Writers) as unknown as { lanes: Map<string, Map<string, unknown[]>> };
  const waiting = () => [...(lanes.get(`pool ${pool_id}`)?.values() ?? [])].flat().length;
  const holder = fixture.get(DataSource).createQueryRunner();
  await holder.startTransaction();
  await holder.query('SELECT FROM pool WHERE pool_id = $1 FOR UPDATE', [pool_id]);
  const asked = { start: 1, subscription_id, vgpus: 1, pod_name: 'job' };
  const pods = all(() => fixture.ask(podWorkloads.start, { ...asked, pod_id: newId() }, systemContext('pods')));
  while (waiting() < callers - 1) await new Promise((resolve) => setImmediate(resolve));
  const started = fixture.start(other, own);
  while (waiting() < callers) await new Promise((resolve) => setImmediate(resolve));
  await holder.commitTransaction();
  await holder.release();
  await Promise.all([started, ...pods]);
  const { workload_id } = await started;
  const before = await fixture.query(
    'SELECT FROM workload WHERE subscription_id = $1 AND created_at < (SELECT created_at FROM workload WHERE workload_id = $2)',
    [subscription_id, workload_id],
  );
  expect(before.length).toBeLessThanOrEqual(3);
});
