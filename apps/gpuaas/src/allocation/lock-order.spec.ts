import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { subscriptions, type Pool } from '@atoll/contracts/gpuaas';
import { takeTurn } from '@atoll/database';
import { inTransactionBeside, untilLockWaits } from '@atoll/testing';
import { SubscriptionResizing } from '../subscriptions/subscription-resizing.js';
import { behindLock } from '../workloads/shared-starting-fixture.js';
import { GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

type TwoGpus = Pool & Inventory;
/** Two GPUs that four vGPUs take whole. */
const twoGpus = (): Promise<TwoGpus> => fixture.pool({ mechanism: 'mps', replicas: 2 }, { count: 2 });
const subscribe = (pool: TwoGpus) => fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 4 });

/**
 * Has something done while the GPU with the smaller id is locked, and tells whether the other one is locked meanwhile.
 */
async function locksTheOther({ gpu_ids }: TwoGpus, work: () => Promise<unknown>): Promise<boolean> {
  const [smaller, larger] = gpu_ids.toSorted((one, other) => Number(one) - Number(other));
  const first = fixture.get(DataSource).createQueryRunner();
  await first.connect();
  try {
    await first.startTransaction();
    await first.query('SELECT FROM gpu WHERE gpu_id = $1 FOR UPDATE', [smaller]);
    const working = work();
    await untilLockWaits(fixture, { text: 'FROM gpu ' });
    const free = await fixture.query('SELECT FROM gpu WHERE gpu_id = $1 FOR UPDATE SKIP LOCKED', [larger]);
    await first.commitTransaction();
    await working;
    return free.length === 0;
  } finally {
    await first.release();
  }
}

describe('whoever allocates of a pool waits for another who does', () => {
  it.each([
    ['leases', { mechanism: 'mps', replicas: 2 }],
    ['entitlements', { mechanism: 'mps', replicas: 2, overcommit: 2 }],
  ] as const)('%s', async (_, terms) => {
    const { pool_id } = await fixture.pool(terms);
    await inTransactionBeside(fixture.get(DataSource), async (other) => {
      await other.query('SELECT FROM pool WHERE pool_id = $1 FOR NO KEY UPDATE', [pool_id]);
      const subscribing = fixture.subscribe(team, { pool_id });
      expect(await untilLockWaits(fixture, { text: 'FROM pool', unless: subscribing })).toHaveLength(1);
      await other.commitTransaction();
      await subscribing;
    });
    await fixture.settle();
  });
});

describe('GPUs are locked in the order of their ids', () => {
  it('where leases are allocated', async () => {
    const pool = await twoGpus();
    expect(await locksTheOther(pool, () => subscribe(pool))).toBe(false);
    await fixture.settle();
  });

  it('where one has changed since it was looked at: then none is kept locked while others are', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 }, { count: 3 });
    const [first = '', second = '', third = ''] = pool.gpu_ids.toSorted((one, other) => Number(one) - Number(other));
    const holders = [[first, second], [third]].map((gpuIds) => ({
      gpuIds,
      runner: fixture.get(DataSource).createQueryRunner(),
    }));
    const [ofPlanned, ofThird] = holders.map(({ runner }) => runner);
    for (const { gpuIds, runner } of holders) {
      await runner.connect();
      await runner.startTransaction();
      await runner.query('SELECT FROM gpu WHERE gpu_id = ANY ($1) FOR UPDATE', [gpuIds]);
    }
    try {
      const subscribing = subscribe(pool);
      await untilLockWaits(fixture, { text: 'FROM gpu ' });
      await ofPlanned?.query(`UPDATE gpu SET state = 'offline' WHERE gpu_id = $1`, [first]);
      await ofPlanned?.commitTransaction();
      // For the third, which it takes in place of the first.
      const isFree = async (gpuId: string) =>
        (await fixture.query('SELECT FROM gpu WHERE gpu_id = $1 FOR UPDATE SKIP LOCKED', [gpuId])).length === 1;
      while (await isFree(second)) await delay(5);
      await untilLockWaits(fixture, { text: 'FROM gpu ' });
      expect(await isFree(first)).toBe(true);
      await ofThird?.commitTransaction();
      await subscribing;
    } finally {
      for (const { runner } of holders) {
        if (runner.isTransactionActive) await runner.rollbackTransaction();
        await runner.release();
      }
    }
    await fixture.query(`UPDATE gpu SET state = 'spatial' WHERE gpu_id = $1`, [first]);
    await fixture.settle();
  });

  it('where leases are given back', async () => {
    const pool = await twoGpus();
    const held = await subscribe(pool);
    await fixture.settle();
    await fixture.unsubscribe(team, held);
    expect(await locksTheOther(pool, () => fixture.work())).toBe(false);
    expect((await fixture.subscription(team, held)).status).toBe('unsubscribed');
  });

  it('where one transaction allocates for a subscription that grows and takes from one that shrinks', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 3 }, { count: 2 });
    const one = (vgpus: number) => fixture.subscribe(team, { pool_id: pool.pool_id, vgpus });
    const [shrinking, growing, first] = [await one(3), await one(1), await one(1)];
    await fixture.settle();
    const resize = ({ subscription_id }: { subscription_id: string }, vgpus: number) =>
      fixture.call(subscriptions.resize, { subscription_id, vgpus }, team.member);
    const asked = jest.spyOn(fixture.get(SubscriptionResizing), 'resize');
    const holder = fixture.get(DataSource).createQueryRunner();
    await holder.connect();
    await holder.startTransaction();
    await holder.query('SELECT FROM subscription WHERE subscription_id = $1 FOR UPDATE', [first.subscription_id]);
    const all = [resize(first, 1)];
    await untilLockWaits(fixture);
    all.push(resize(shrinking, 2), resize(growing, 2));
    while (asked.mock.calls.length < all.length) await delay(5);
    const shared = async () => {
      await holder.commitTransaction();
      await holder.release();
      await Promise.all(all);
    };
    expect(await locksTheOther(pool, shared)).toBe(false);
  });

  it('where one transaction starts several workloads, whatever is full before', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 3, overcommit: 4 }, { count: 2 });
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 12 });
    const plug = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 1 });
    await fixture.settle();
    const first = await fixture.start(team, held, 3);
    await fixture.start(team, held, 1);
    await fixture.settle();
    await fixture.stopWorkload(team, first);
    await fixture.settle();
    // The GPU with the larger id holds one, and is filled first.
    const all = () => [fixture.start(team, held, 2), fixture.start(team, held, 3)];
    const shared = () => behindLock(fixture, plug.subscription_id, () => fixture.start(team, plug, 2), all);
    expect(await locksTheOther(pool, shared)).toBe(false);
    const leases = await fixture.query('SELECT FROM lease WHERE subscription_id = $1', [held.subscription_id]);
    expect(leases).toHaveLength(6);
  });
});

describe('subscriptions are locked in the order of their ids', () => {
  it('where one transaction starts workloads of several', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 3, overcommit: 4 });
    const one = () => fixture.subscribe(team, { pool_id: pool.pool_id });
    const [smaller, larger, plug] = [await one(), await one(), await one()];
    await fixture.settle();
    const holder = fixture.get(DataSource).createQueryRunner();
    await holder.connect();
    try {
      await holder.startTransaction();
      await holder.query('SELECT FROM subscription WHERE subscription_id = $1 FOR UPDATE', [smaller.subscription_id]);
      const [{ pid }] = (await holder.query('SELECT pg_backend_pid() AS pid')) as [{ pid: number }];
      const all = () => [fixture.start(team, larger), fixture.start(team, smaller)];
      const starting = behindLock(fixture, plug.subscription_id, () => fixture.start(team, plug), all);
      const behindIt = 'SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))';
      while ((await fixture.query(behindIt, [pid])).length === 0) await delay(10);
      const lock = 'SELECT FROM subscription WHERE subscription_id = $1 FOR UPDATE SKIP LOCKED';
      const free = await fixture.query(lock, [larger.subscription_id]);
      await holder.commitTransaction();
      expect([free.length, (await starting).sizes]).toEqual([1, [2]]);
    } finally {
      await holder.release();
    }
  });
});

describe('a team is locked before what it holds', () => {
  it.each([
    [
      'a subscription grows',
      1,
      'vgpus_allocated',
      (subscription_id: string) => fixture.call(subscriptions.resize, { subscription_id, vgpus: 2 }, team.member),
    ],
    ['a workload starts', 1, 'vgpus', (subscription_id: string) => fixture.start(team, { subscription_id })],
    [
      'a workload starts where slices are sold more than once',
      2,
      'vgpus',
      (subscription_id: string) => fixture.start(team, { subscription_id }),
    ],
  ])('where %s', async (_, overcommit, field, give) => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 4, overcommit });
    const { subscription_id } = await fixture.subscribe(team, { pool_id });
    await fixture.settle();
    // As whoever ends what a team holds.
    const ending = fixture.get(DataSource).createQueryRunner();
    await ending.connect();
    try {
      await ending.startTransaction();
      await takeTurn(ending.manager, `team ${team.team_id}`);
      const giving = give(subscription_id);
      await untilLockWaits(fixture);
      const free = await ending.query('SELECT FROM subscription WHERE subscription_id = $1 FOR UPDATE SKIP LOCKED', [
        subscription_id,
      ]);
      await ending.commitTransaction();
      expect([free, await giving]).toEqual([[{}], expect.objectContaining({ [field]: 1 })]);
    } finally {
      await ending.release();
    }
  });
});
