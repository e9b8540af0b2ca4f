import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { subscriptions } from '@atoll/contracts/gpuaas';
import { lockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { GpuaasFixture } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

/** More than the service has connections. */
const callers = 30;

/**
 * Has `many` asked while the pool, or what is subscribed to it, is locked by another process, another team's call
 * answered meanwhile, and waits for the answers.
 */
async function whileLocked<T>(
  poolId: string,
  many: () => Promise<T>[],
  table: 'pool' | 'subscription' = 'pool',
): Promise<T[]> {
  const other = await fixture.team();
  const holder = fixture.get(DataSource).createQueryRunner();
  await holder.connect();
  await holder.startTransaction();
  await holder.query(`SELECT FROM ${table} WHERE pool_id = $1 FOR UPDATE`, [poolId]);
  const asked = many();
  try {
    expect((await fixture.call(subscriptions.list, { team_id: other.team_id }, other.member)).data).toEqual([]);
    expect((await lockWaits(fixture)).length).toBeLessThanOrEqual(1);
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

it.each([
  ['one pool whose slices are sold more than once', 2, 'pool'],
  ['one subscription', 1, 'subscription'],
] as const)(
  'while many workloads wait for %s, calls of others are answered; then all start',
  async (_, overcommit, locked) => {
    const team = await fixture.team();
    const { pool_id } = await fixture.pool({ ...mps, replicas: 40, overcommit }, { count: 2 });
    const { subscription_id } = await fixture.subscribe(team, { pool_id, vgpus: callers });
    await fixture.settle();
    const started = await whileLocked(pool_id, () => all(() => fixture.start(team, { subscription_id })), locked);
    expect(new Set(started.map(({ workload_id }) => workload_id)).size).toBe(callers);
  },
);
