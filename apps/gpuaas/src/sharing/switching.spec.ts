import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { pools, type Pool, type Subscription, type Workload } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { MachineWorkers } from '@atoll/state-machine';
import { NodeDriver } from '../driver/node-driver.js';
import { SimulatedFaults, type FaultKind, type SimulatedOperation } from '../driver/simulated-faults.js';
import { errorOf, GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let nodeName: string;
let pool: Pool & Inventory;
let held: Subscription;
beforeAll(async () => {
  fixture = await GpuaasFixture.start({ workers: { isIdle: true } });
});
afterAll(() => fixture.stop());

/** One GPU, two MPS shares or four turns, and an entitlement to eight vGPUs. */
beforeEach(async () => {
  team = await fixture.team();
  nodeName = `node-${newId()}`;
  const terms = { mechanism: 'mps', replicas: 2, overcommit: 4, allow_fallback: true, temporal_replicas: 4 } as const;
  pool = await fixture.pool(terms, { nodeName });
  held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 8 });
  await fixture.settle();
});

const start = () => fixture.start(team, held);
const stop = (workload: Workload) => fixture.stopWorkload(team, workload);
const gpu = () => fixture.gpu(pool);
const fault = (operation: SimulatedOperation, kind: FaultKind, times = 1_000) =>
  fixture.get(SimulatedFaults).inject(nodeName, operation, kind, times);
const mend = () => fixture.get(SimulatedFaults).mend(nodeName);
const stateOf = async ({ workload_id }: Workload) => {
  const [row] = await fixture.query<{ state: string; reason: string | null }>(
    `SELECT state, coalesce(failure, last_error->>'message') AS reason FROM workload WHERE workload_id = $1`,
    [workload_id],
  );
  return [row?.state, row?.reason];
};
/** As many as there are to be, running. */
async function running(count: number): Promise<Workload[]> {
  const workloads: Workload[] = [];
  for (let at = 0; at < count; at += 1) workloads.push(await start());
  await fixture.settle();
  for (const workload of workloads) expect((await stateOf(workload))[0]).toBe('running');
  return workloads;
}
/**
 * One step of each machine that has something to do; `work` would go on with a device that has been asked meanwhile.
 */
async function workOnce(): Promise<void> {
  for (const worker of await fixture.get(MachineWorkers).due()) await worker.doNext();
}
/** The GPU is let alone for a while. */
const park = () =>
  fixture.query(
    `UPDATE gpu SET due_at = NULL, parked_until = clock_timestamp() + interval '30 seconds' WHERE pool_id = $1`,
    [pool.pool_id],
  );
const nodeIs = async (status: string) => (await fixture.node(pool.node_id)).status === status;
const capacity = async () => {
  const { data } = await fixture.call(pools.available, { team_id: team.team_id, gpuaas_id: pool.gpuaas_id });
  return data[0]?.profiles[0]?.available_vgpus;
};

describe('a GPU in Spatial', () => {
  it('falls back only when nothing else fits, and lets those who run there run', async () => {
    const [first] = await running(2);
    const third = await start();
    expect((await stateOf(third))[0]).toBe('pending');
    expect(await gpu()).toMatchObject({ mode: 'Spatial', origin: 'configured', transition: 'to_temporal' });
    await fixture.settle();
    expect(await gpu()).toMatchObject({ mode: 'Temporal', origin: 'dynamic_fallback', transition: null, slices: [] });
    for (const workload of [first, third]) expect((await stateOf(workload as Workload))[0]).toBe('running');
  });

  it('takes no more while it switches than there will be turns', async () => {
    await running(2);
    await start();
    await start();
    expect((await errorOf(start())).code).toBe('insufficient_capacity');
  });

  it.each([
    ['fails', 'fail', 'The device could not be switched.'],
    ['says that it has switched, and has not', 'lie', 'The device reports that it is done, but it is not.'],
  ] as const)(
    'stays where the device that %s is in Spatial: who asked is told, the others run on',
    async (_, kind, reason) => {
      const [first, second] = await running(2);
      await fault('switch', kind, 1);
      const third = await start();
      await fixture.settle();
      expect(await gpu()).toMatchObject({
        mode: 'Spatial',
        origin: 'configured',
        transition: null,
        reason: expect.stringContaining(`${reason} It failed to fall back at `),
        slices: [{}, {}],
        tenants: [],
      });
      expect(await stateOf(third)).toEqual([
        'failed',
        `The GPU could not be switched to the required sharing mode. ${reason}`,
      ]);
      for (const workload of [first, second]) expect((await stateOf(workload as Workload))[0]).toBe('running');
    },
  );

  it('gives a share each to those who asked for turns, if as many were given back before the switch failed', async () => {
    const both = await running(2);
    await fault('switch', 'fail', 1);
    const late = [await start(), await start()];
    for (const workload of both) await stop(workload);
    await park();
    await fixture.settle();
    for (const workload of late) expect((await stateOf(workload))[0]).toBe('running');
    expect(await gpu()).toMatchObject({ mode: 'Spatial', slices: [{ state: 'occupied' }, { state: 'occupied' }] });
  });

  it('gives the one share that was given back before the switch failed to who asked for a turn first', async () => {
    const [leaves] = await running(2);
    await fault('switch', 'fail', 1);
    const [first, second] = [await start(), await start()];
    await stop(leaves as Workload);
    await park();
    await fixture.settle();
    expect([(await stateOf(first))[0], (await stateOf(second))[0]]).toEqual(['running', 'failed']);
  });

  it('is out of service after a switch that does not end, with its node, and comes back by itself when that has been initialised', async () => {
    const [first] = await running(2);
    await fault('switch', 'hang', 1);
    const third = await start();
    await fixture.until(() => nodeIs('init_failed'));
    const { status, reason } = await fixture.node(pool.node_id);
    expect([status, reason]).toEqual(['init_failed', expect.stringContaining('GPU-')]);
    expect(await capacity()).toBe(0);
    expect((await stateOf(third))[0]).not.toBe('running');
    expect((await stateOf(first as Workload))[0]).toBe('running');
    await fixture.until(() => nodeIs('ready'));
    await fixture.settle();
    expect((await fixture.node(pool.node_id)).status).toBe('ready');
    expect(await gpu()).toMatchObject({ mode: 'Spatial', transition: null, slices: [{}, {}] });
    expect((await stateOf(third))[0]).toBe('failed');
    // Without a detour: it is never in Temporal.
    const history = await fixture.query<{ to_state: string }>(
      `SELECT to_state FROM machine_history WHERE machine = 'gpu' AND instance = $1 ORDER BY id`,
      [pool.gpu_ids[0]],
    );
    expect(history.map(({ to_state }) => to_state).slice(-3)).toEqual(['offline', 'preparing', 'spatial']);
  });

  it('asks its device for what its pool is: shares or slices of so many parts, or so many turns', async () => {
    const asked = jest.spyOn(fixture.get(NodeDriver), 'request');
    await running(2);
    const third = await start();
    await fixture.settle();
    await stop(third);
    await fixture.settle();
    expect(await gpu()).toMatchObject({ mode: 'Spatial', transition: null });
    const layouts = asked.mock.calls.map(([, { mode, mechanism, replicas }]) => ({ mode, mechanism, replicas }));
    expect(layouts).toEqual([
      { mode: 'Temporal', mechanism: 'time_slicing', replicas: 4 },
      { mode: 'Spatial', mechanism: 'mps', replicas: 2 },
    ]);
    asked.mockRestore();
  });

  it('drops an answer to what it was asked before', async () => {
    await running(2);
    await start();
    // The device has not heard of this switch: whatever it says is about an earlier one.
    await fixture.query(`UPDATE simulated_device SET mode = 'Temporal' WHERE uuid = $1`, [(await gpu()).uuid]);
    await workOnce();
    expect(await gpu()).toMatchObject({ transition: 'to_temporal' });
    await fixture.settle();
    expect(await gpu()).toMatchObject({ mode: 'Temporal' });
  });
});

describe('a GPU that fell back', () => {
  it('takes tenants up to its turns, and refuses the next with what would fit', async () => {
    await running(3);
    await running(1);
    const refused = await errorOf(start());
    expect([refused.code, refused.message]).toEqual([
      'insufficient_capacity',
      `Pool ${pool.pool_name} has no capacity for 1 vGPU of mps-2. Available: nothing.`,
    ]);
  });

  it('stays while what runs does not fit in Spatial, and returns when it does; the next request fits', async () => {
    const [first, second] = await running(4);
    await stop(first as Workload);
    await fixture.settle();
    expect(await gpu()).toMatchObject({ mode: 'Temporal', transition: null });
    await stop(second as Workload);
    await fixture.settle();
    expect(await gpu()).toMatchObject({
      mode: 'Spatial',
      origin: 'configured',
      transition: null,
      slices: [{}, {}],
      tenants: [],
    });
    expect(
      await fixture.query(`SELECT state FROM workload WHERE state = 'running' AND team_id = $1`, [team.team_id]),
    ).toHaveLength(2);
  });

  it('does not mind stops that come twice, late, or after the end', async () => {
    const [first, second] = await running(3);
    for (const workload of [first, first, second, first]) await stop(workload as Workload);
    await fixture.settle();
    for (const workload of [second, first]) await stop(workload as Workload);
    await fixture.settle();
    expect(await gpu()).toMatchObject({ mode: 'Spatial', slices: [{}] });
    expect(await capacity()).toBe(0);
  });

  it('waits with its return until the device holds no memory of what stopped, shows why, and tries again', async () => {
    const [first] = await running(3);
    await fault('vacate', 'busy', 1);
    await stop(first as Workload);
    await fixture.during(20);
    expect(await gpu()).toMatchObject({
      transition: 'to_spatial',
      reason: 'The device still holds memory of workloads that have stopped.',
    });
    await fixture.query(`UPDATE simulated_device SET holders = '{}' WHERE uuid = $1`, [(await gpu()).uuid]);
    await fixture.pass(12);
    do await workOnce();
    while ((await gpu()).reason !== null);
    expect(await gpu()).toMatchObject({ transition: 'to_spatial', reason: null });
    await fixture.during(20);
    expect(await gpu()).toMatchObject({ mode: 'Spatial', transition: null, reason: null });
  });

  it('is of use again when the device stays busy for long, and returns when it is tried the next time', async () => {
    const [first] = await running(3);
    await fault('vacate', 'busy', 1);
    await stop(first as Workload);
    await fixture.until(async () => (await gpu()).transition === null);
    expect(await gpu()).toMatchObject({
      mode: 'Temporal',
      transition: null,
      reason: expect.stringContaining('still holds memory'),
    });
    const late = await start();
    await fixture.work();
    expect((await stateOf(late))[0]).toBe('running');
    await stop(late);
    await fixture.query(`UPDATE simulated_device SET holders = '{}' WHERE uuid = $1`, [(await gpu()).uuid]);
    await fixture.during(40);
    expect(await gpu()).toMatchObject({ mode: 'Spatial', transition: null });
  });

  it('is left alone for a while when it could not return, and then tried again without a request', async () => {
    const [first] = await running(3);
    await fault('vacate', 'busy', 1);
    await stop(first as Workload);
    do await fixture.during(2);
    while ((await gpu()).transition !== null);
    const parked = 'SELECT FROM gpu WHERE pool_id = $1 AND due_at IS NULL AND parked_until IS NOT NULL';
    expect([(await gpu()).mode, await fixture.query(parked, [pool.pool_id])]).toEqual(['Temporal', [{}]]);
    await fixture.query(`UPDATE simulated_device SET holders = '{}' WHERE uuid = $1`, [(await gpu()).uuid]);
    await fixture.during(40);
    expect(await gpu()).toMatchObject({ mode: 'Spatial', transition: null });
  });

  it('takes its node out of service when the device fails on the way back; who runs keeps his place', async () => {
    const [first, second] = await running(3);
    await fault('switch', 'fail', 1);
    await stop(first as Workload);
    await fixture.until(() => nodeIs('init_failed'));
    expect(await capacity()).toBe(0);
    await fixture.during(60);
    expect(await gpu()).toMatchObject({ mode: 'Spatial', transition: null, slices: [{}, {}] });
    expect((await stateOf(second as Workload))[0]).toBe('running');
  });

  it('serves a request that meets its return in the mode that results', async () => {
    const [first, second] = await running(3);
    await fault('vacate', 'busy', 1);
    await stop(first as Workload);
    await stop(second as Workload);
    await fixture.during(4);
    expect(await gpu()).toMatchObject({ transition: 'to_spatial' });
    const arrived = await start();
    expect((await stateOf(arrived))[0]).toBe('pending');
    await fixture.query(`UPDATE simulated_device SET holders = '{}' WHERE uuid = $1`, [(await gpu()).uuid]);
    await fixture.during(20);
    expect((await stateOf(arrived))[0]).toBe('running');
    expect(await gpu()).toMatchObject({ mode: 'Spatial', slices: [{ state: 'occupied' }, { state: 'occupied' }] });
  });

  it('serves it in Temporal where the return does not come about', async () => {
    const [first, second] = await running(3);
    await fault('vacate', 'busy', 1);
    await stop(first as Workload);
    await stop(second as Workload);
    await fixture.during(4);
    const waiting = await start();
    await fixture.during(80);
    expect(await gpu()).toMatchObject({ mode: 'Temporal' });
    expect((await stateOf(waiting))[0]).toBe('running');
  });

  it('goes back and forth as often as it must, and ends where it belongs', async () => {
    const [first] = await running(2);
    for (let round = 0; round < 5; round += 1) {
      const third = await start();
      await fixture.settle();
      expect(await gpu()).toMatchObject({ mode: 'Temporal' });
      await stop(third);
      await fixture.settle();
      expect(await gpu()).toMatchObject({ mode: 'Spatial', slices: [{}, {}], tenants: [] });
    }
    expect((await stateOf(first as Workload))[0]).toBe('running');
    await mend();
  });
});

it('a GPU that is configured Temporal stays so', async () => {
  const temporal = await fixture.pool(
    { sharing_mode: 'Temporal', mechanism: 'time_slicing', replicas: 3 },
    { board: 'L4-24GB' },
  );
  const one = await fixture.subscribe(team, { pool_id: temporal.pool_id, vgpus: 3 });
  await fixture.settle();
  expect(await fixture.subscription(team, one)).toMatchObject({ status: 'active', profile: 'ts-3', v_ram_gb: 8 });
  expect(await fixture.gpu(temporal)).toMatchObject({ mode: 'Temporal', origin: 'configured', tenants: [{}, {}, {}] });
  await fixture.unsubscribe(team, one);
  await fixture.settle();
  expect(await fixture.gpu(temporal)).toMatchObject({
    mode: 'Temporal',
    origin: 'configured',
    transition: null,
    tenants: [],
  });
});

it('a GPU in Temporal that is out of service for a while keeps those who run there, and their turns', async () => {
  const stays = [...(await running(2)), await start()];
  const leaves = await start();
  await fixture.settle();
  const before = await gpu();
  const tenants = before.tenants.filter(({ workload_id }) => workload_id !== leaves.workload_id);
  expect([before.tenants.length, tenants.length]).toEqual([4, 3]);
  await fault('vacate', 'fail', 1);
  await stop(leaves);
  await fixture.until(() => nodeIs('init_failed'));
  expect([await capacity(), (await gpu()).tenants]).toEqual([0, tenants]);
  await fixture.until(() => nodeIs('ready'));
  await fixture.settle();
  expect(await gpu()).toEqual({ ...before, tenants });
  for (const workload of stays) expect((await stateOf(workload))[0]).toBe('running');
});
