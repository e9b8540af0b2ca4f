import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { subscriptions, workloads, type Pool, type Subscription, type Workload } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { inTransactionBeside, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let nodeName: string;
let pool: Pool & Inventory;
let held: Subscription;
const terms = { mechanism: 'mps', replicas: 2, overcommit: 8, allow_fallback: true, temporal_replicas: 4 } as const;

beforeAll(async () => {
  fixture = await GpuaasFixture.start({ workers: { isIdle: true } });
});
afterAll(() => fixture.stop());

/** One GPU, two MPS shares or four turns, and an entitlement to eight vGPUs. */
beforeEach(async () => {
  team = await fixture.team();
  nodeName = `node-${newId()}`;
  pool = await fixture.pool(terms, { nodeName });
  held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 8 });
  await fixture.settle();
});

const start = (vgpus = 1) => fixture.start(team, held, vgpus);
const stop = (workload: Workload) => fixture.stopWorkload(team, workload);
const statusOf = async ({ workload_id }: Workload) => {
  const { data } = await fixture.call(workloads.list, { team_id: team.team_id, include_ended: 'true', limit: 100 });
  return data.find((each) => each.workload_id === workload_id)?.status;
};
const queue = async () =>
  (await fixture.query<{ workload_id: string }>('SELECT workload_id FROM waiting_request ORDER BY waiting_id')).map(
    ({ workload_id }) => workload_id,
  );

/** Nobody who waits looks again by time. */
async function postpone(): Promise<void> {
  for (const table of ['workload', 'subscription']) {
    await fixture.query(
      `UPDATE ${table} SET due_at = NULL, parked_until = clock_timestamp() + interval '1 hour' WHERE due_at IS NOT NULL OR parked_until IS NOT NULL`,
    );
  }
}
const isPostponed = async ({ workload_id }: Workload) => {
  const sql = `SELECT FROM workload WHERE workload_id = $1 AND parked_until > clock_timestamp() + interval '50 minutes'`;
  return (await fixture.query(sql, [workload_id])).length > 0;
};

/** Time passes for the GPU alone, until it is at rest. */
async function rest(): Promise<void> {
  do {
    await fixture.query('UPDATE gpu SET parked_until = clock_timestamp() WHERE parked_until IS NOT NULL');
    await fixture.work();
  } while ((await fixture.gpu(pool)).transition !== null);
}

/** Two run; a third has been stopped, and the device says that its memory is still held: the GPU is on its way back. */
async function returning(): Promise<Workload> {
  const [one, , third] = [await start(), await start(), await start()];
  await fixture.settle();
  await fixture.get(SimulatedFaults).inject(nodeName, 'vacate', 'busy', 1);
  await stop(third);
  await fixture.work();
  expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Temporal', transition: 'to_spatial' });
  return one;
}
const freeDevice = async () =>
  fixture.query(`UPDATE simulated_device SET holders = '{}' WHERE uuid = $1`, [(await fixture.gpu(pool)).uuid]);

describe('without a look by time', () => {
  it('a workload runs when the GPU of its leases has switched', async () => {
    for (let count = 0; count < 2; count += 1) await start();
    await fixture.settle();
    const third = await start();
    await postpone();
    await rest();
    expect([(await fixture.gpu(pool)).mode, await statusOf(third)]).toEqual(['Temporal', 'running']);
  });

  it('a subscription is active when the GPU of its leases has switched', async () => {
    pool = await fixture.pool({ ...terms, overcommit: 1 }, { nodeName: (nodeName = `node-${newId()}`) });
    const subscribe = () => fixture.subscribe(team, { pool_id: pool.pool_id });
    for (let count = 0; count < 2; count += 1) await subscribe();
    await fixture.settle();
    const third = await subscribe();
    await postpone();
    await rest();
    expect([(await fixture.gpu(pool)).mode, (await fixture.subscription(team, third)).status]).toEqual([
      'Temporal',
      'active',
    ]);
  });

  it('a subscription has grown when the GPU of its added leases has switched', async () => {
    pool = await fixture.pool({ ...terms, overcommit: 1 }, { nodeName: (nodeName = `node-${newId()}`) });
    const growing = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 2 });
    await fixture.settle();
    await fixture.call(subscriptions.resize, { subscription_id: growing.subscription_id, vgpus: 3 }, team.member);
    await postpone();
    await rest();
    expect(await fixture.subscription(team, growing)).toMatchObject({ vgpus_allocated: 3, resize: null });
  });

  it('who waits for a pool is served when a GPU of it is at rest', async () => {
    await returning();
    const late = await start();
    expect(await queue()).toEqual([late.workload_id]);
    await postpone();
    await freeDevice();
    await rest();
    expect([await queue(), await statusOf(late)]).toEqual([[], 'running']);
  });

  /** One of a pool whose only GPU is on its way back, and waits for memory to be given back. */
  async function waitingSubscription(): Promise<Subscription> {
    pool = await fixture.pool({ ...terms, overcommit: 1 }, { nodeName: (nodeName = `node-${newId()}`) });
    const subscribe = () => fixture.subscribe(team, { pool_id: pool.pool_id });
    const [, , third] = [await subscribe(), await subscribe(), await subscribe()];
    await fixture.settle();
    await fixture.get(SimulatedFaults).inject(nodeName, 'vacate', 'busy', 1);
    await fixture.unsubscribe(team, third);
    await fixture.work();
    const late = await subscribe();
    expect(await isQueued(late)).toBe(true);
    return late;
  }
  const isQueued = async ({ subscription_id }: Subscription) =>
    (await fixture.query('SELECT FROM waiting_request WHERE subscription_id = $1', [subscription_id])).length > 0;

  it('a subscription that waits for a pool is active when a GPU of it is at rest', async () => {
    const late = await waitingSubscription();
    await postpone();
    await freeDevice();
    await rest();
    expect([await isQueued(late), (await fixture.subscription(team, late)).status]).toEqual([false, 'active']);
  });

  it('who waits for a pool is served when another has done who allocates of it', async () => {
    const late = await waitingSubscription();
    await freeDevice();
    await inTransactionBeside(fixture.get(DataSource), async (other) => {
      await other.query('SELECT FROM pool WHERE pool_id = $1 FOR NO KEY UPDATE', [pool.pool_id]);
      const resting = rest();
      expect(await untilLockWaits(fixture, { text: 'FROM pool', unless: resting })).toHaveLength(1);
      await other.commitTransaction();
      await resting;
    });
    expect([await isQueued(late), (await fixture.subscription(team, late)).status]).toEqual([false, 'active']);
  });

  it('who waits for a pool is served when leases are given back', async () => {
    const one = await returning();
    const late = await start();
    await postpone();
    await stop(one);
    await fixture.work();
    expect([await queue(), (await fixture.gpu(pool)).transition]).toEqual([[], 'to_spatial']);
    expect(await isPostponed(late)).toBe(false);
  });

  it('who waits for a pool looks for room when the first that waits has gone', async () => {
    await returning();
    const [first, second] = [await start(), await start()];
    await postpone();
    await stop(first);
    await fixture.work();
    expect([await queue(), await isPostponed(second)]).toEqual([[second.workload_id], false]);
  });

  it('a GPU returns as soon as it has fallen back, where somebody has gone meanwhile', async () => {
    const first = await start();
    await start();
    await fixture.settle();
    await start();
    await fixture.query(
      `UPDATE gpu SET due_at = NULL, parked_until = clock_timestamp() + interval '1 hour' WHERE gpu_id = $1`,
      [pool.gpu_ids[0]],
    );
    await stop(first);
    await fixture.work();
    expect([(await fixture.gpu(pool)).transition, await statusOf(first)]).toEqual(['to_temporal', 'stopped']);
    await rest();
    expect((await fixture.gpu(pool)).mode).toBe('Spatial');
  });
});
