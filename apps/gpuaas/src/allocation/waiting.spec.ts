import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { podWorkloads, workloads, type Pool, type Subscription, type Workload } from '@atoll/contracts/gpuaas';
import type { UserCaller } from '@atoll/contracts';
import { newId } from '@atoll/database';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { systemContext } from '@atoll/rpc';
import { MachineWorkers } from '@atoll/state-machine';
import { errorOf, GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { statementsOf } from '@atoll/testing';
import { maxWaiting } from './scheduling.js';
import { betweenLookAndWriting } from './held-gpus-fixture.js';
import { WaitingQueue } from './waiting-queue.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let nodeName: string;
let pool: Pool & Inventory;
let held: Subscription;
const terms = { mechanism: 'mps', replicas: 2, overcommit: 8, allow_fallback: true, temporal_replicas: 4 } as const;
const reason = 'Waiting for a GPU to change its sharing mode.';

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

const start = (vgpus = 1, of: ToldTeam = team, on = held) => fixture.start(of, on, vgpus);
const stop = (workload: Workload) => fixture.stopWorkload(team, workload);
const fault = (operation: 'vacate' | 'switch', kind: 'busy' | 'fail', times = 1) =>
  fixture.get(SimulatedFaults).inject(nodeName, operation, kind, times);
const freeDevice = async () =>
  fixture.query(`UPDATE simulated_device SET holders = '{}' WHERE uuid = $1`, [(await fixture.gpu(pool)).uuid]);
const shown = async ({ workload_id }: Workload, of = team) => {
  const { data } = await fixture.call(workloads.list, { team_id: of.team_id, include_ended: 'true', limit: 100 });
  const { status, reason } = data.find((each) => each.workload_id === workload_id)!;
  return { status, reason };
};
const waiting = () =>
  fixture.query<{ workload_id: string }>('SELECT workload_id FROM waiting_request ORDER BY waiting_id');

/**
 * Two run; a third has been stopped, and the device says that its memory is still held: the GPU is on its way back for
 * up to a minute.
 */
async function returning(): Promise<[Workload, Workload]> {
  const [one, two, third] = [await start(), await start(), await start()];
  await fixture.settle();
  await fault('vacate', 'busy');
  await stop(third);
  await fixture.during(4);
  expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Temporal', transition: 'to_spatial' });
  return [one, two];
}

describe('a workload that meets a GPU on its way back', () => {
  it('waits with a reason, and runs when the GPU has returned and fallen back for it', async () => {
    const [one, two] = await returning();
    const late = await start();
    expect(late).toMatchObject({ status: 'pending', reason });
    await fixture.during(4);
    expect(await shown(late)).toEqual({ status: 'pending', reason });
    await freeDevice();
    await fixture.settle();
    for (const each of [one, two, late]) expect(await shown(each)).toEqual({ status: 'running', reason: null });
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Temporal', origin: 'dynamic_fallback', transition: null });
    expect(await waiting()).toEqual([]);
  });

  it('runs in a turn where the GPU does not come back', async () => {
    await returning();
    const late = await start();
    await fixture.during(90);
    expect(await shown(late)).toMatchObject({ status: 'running' });
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Temporal', transition: null });
  });

  it('is refused at once where it would not fit then either, and told what would', async () => {
    await returning();
    const { code, message } = await errorOf(start(3));
    expect([code, message]).toEqual([
      'insufficient_capacity',
      `Pool ${pool.pool_name} has no capacity for 3 vGPUs of mps-2. Available: 2 of mps-2.`,
    ]);
    expect((await start(2)).status).toBe('pending');
    expect((await errorOf(start())).message).toContain('Available: nothing.');
  });

  it('is one of as many as will fit, however many ask at once', async () => {
    const others = await Promise.all(
      Array.from({ length: 8 }, () => fixture.subscribe(team, { pool_id: pool.pool_id })),
    );
    await fixture.settle();
    await returning();
    const answers = await Promise.allSettled(others.map((each) => start(1, team, each)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    await freeDevice();
    await fixture.settle();
    expect((await fixture.gpu(pool)).tenants).toHaveLength(4);
  });

  it('is served in the order of arrival: who came first is not passed by who came later', async () => {
    const [one] = await returning();
    const [first, second] = [await start(), await start()];
    expect((await waiting()).map(({ workload_id }) => workload_id)).toEqual([first.workload_id, second.workload_id]);
    await stop(one);
    await fixture.during(2);
    await freeDevice();
    await fixture.settle();
    for (const each of [first, second]) expect((await shown(each)).status).toBe('running');
    const rows = await fixture.query<{ workload_id: string }>(
      'SELECT workload_id FROM lease WHERE workload_id = ANY ($1) ORDER BY lease_id',
      [[first.workload_id, second.workload_id]],
    );
    expect(rows.map(({ workload_id }) => workload_id)).toEqual([first.workload_id, second.workload_id]);
  });

  it('looks for room only where it is the first, and so for all of its queue', async () => {
    await returning();
    const [first, second] = [await start(), await start()];
    const looks = async ({ workload_id }: Workload) =>
      (await statementsOf(() => fixture.get(WaitingQueue).poll('workload', workload_id))).length;
    expect(await looks(second)).toBe(1);
    expect(await looks(first)).toBeGreaterThan(3);
  });

  it('may be stopped while it waits: its place is for the next', async () => {
    await returning();
    const [wide, next] = [await start(2), () => start()];
    expect((await errorOf(next())).code).toBe('insufficient_capacity');
    expect((await stop(wide)).status).toBe('stopping');
    const small = await next();
    expect(small.status).toBe('pending');
    await freeDevice();
    await fixture.settle();
    expect([(await shown(wide)).status, (await shown(small)).status]).toEqual(['stopped', 'running']);
  });

  it('may be stopped while the queue is served: what was planned for the next on a GPU that was to fall back is planned anew', async () => {
    const [one, two] = await returning();
    const [first, second] = [await start(), await start()];
    await freeDevice();
    const [gpus, , , workloads] = fixture.get(MachineWorkers).workers;
    do {
      await gpus?.settle();
      await fixture.pass(2);
    } while ((await fixture.gpu(pool)).transition !== null);
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', transition: null });
    await betweenLookAndWriting(
      fixture,
      async () => workloads?.settle(),
      () => stop(first),
    );
    await fixture.settle();
    expect((await shown(first)).status).toBe('stopped');
    for (const each of [one, two, second]) expect(await shown(each)).toEqual({ status: 'running', reason: null });
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Temporal', transition: null });
  });

  it('ends with its subscription', async () => {
    await returning();
    const late = await start();
    await fixture.unsubscribe(team, held, true);
    expect(await waiting()).toEqual([]);
    await freeDevice();
    await fixture.settle();
    expect([(await shown(late)).status, (await fixture.subscription(team, held)).status]).toEqual([
      'stopped',
      'unsubscribed',
    ]);
  });

  it('has failed with the reason where the GPU is lost on its way', async () => {
    await returning();
    const late = await start();
    await freeDevice();
    await fault('switch', 'fail');
    await fixture.during(10);
    expect((await fixture.node(pool.node_id)).status).toBe('init_failed');
    expect(await shown(late)).toEqual({
      status: 'failed',
      reason: `Pool ${pool.pool_name} has no capacity for 1 vGPU of mps-2. Available: nothing.`,
    });
    expect(await waiting()).toEqual([]);
  });

  it('has failed with the reason where nobody could serve it before its deadline', async () => {
    await returning();
    const late = await start();
    await fixture.query(`UPDATE workload SET deadline_at = clock_timestamp() WHERE workload_id = $1`, [
      late.workload_id,
    ]);
    await fixture.work();
    expect(await shown(late)).toEqual({ status: 'failed', reason: `Deadline exceeded: ${reason}` });
    expect(await waiting()).toEqual([]);
  });

  it('does not wait in vain: of twelve that race a stop, none is refused that fits', async () => {
    let last = (await Promise.all([start(), start(), start()]))[2];
    await fixture.settle();
    for (let round = 0; round < 12; round += 1) {
      const stopped = stop(last);
      const [, next] = await Promise.all([stopped.then(() => fixture.work()), stopped.then(() => start())]);
      await fixture.settle();
      expect((await shown(next)).status).toBe('running');
      last = next;
    }
  });
});

describe('a team whose requests wait', () => {
  it('holds up nobody who asks for what is free anyway', async () => {
    const three = await fixture.pool(terms, { count: 3, nodeName: `node-${newId()}` });
    const ours = await fixture.subscribe(team, { pool_id: three.pool_id, vgpus: 16 });
    const other = await fixture.team();
    const theirs = await fixture.subscribe(other, { pool_id: three.pool_id, vgpus: 8 });
    await fixture.settle();
    await fixture.start(team, ours, 2);
    await fixture.settle();
    // The GPU of both is on its way back, where it is full until it may fall back again.
    await fixture.query(`UPDATE lease SET turn = slot_start WHERE subscription_id = $1`, [ours.subscription_id]);
    await fixture.query(
      `UPDATE gpu SET state = 'to_spatial', turns_used = slots_used WHERE pool_id = $1 AND slots_used <> 0`,
      [three.pool_id],
    );
    // Of ten turns that there will be nine; eight there are now.
    expect(await fixture.start(team, ours, 9)).toMatchObject({ status: 'pending', reason });
    expect(await fixture.start(other, theirs)).toMatchObject({ status: 'pending', reason: null });
    expect((await errorOf(fixture.start(other, theirs))).code).toBe('insufficient_capacity');
  });

  it('has a bounded number of them for a pool', async () => {
    const many = await fixture.pool(
      { ...terms, replicas: 20, temporal_replicas: 48, overcommit: 16 },
      { nodeName: `node-${newId()}` },
    );
    const ours = await fixture.subscribe(team, { pool_id: many.pool_id, vgpus: 100 });
    await fixture.settle();
    await fixture.start(team, ours, 20);
    await fixture.settle();
    await fixture.query(`UPDATE gpu SET state = 'to_spatial', turns_used = slots_used WHERE gpu_id = $1`, [
      many.gpu_ids[0],
    ]);
    for (let count = 0; count < maxWaiting.team; count += 1)
      expect((await fixture.start(team, ours)).status).toBe('pending');
    const { code, message } = await errorOf(fixture.start(team, ours));
    expect([code, message]).toEqual([
      'insufficient_capacity',
      `Pool ${many.pool_name} has no capacity for 1 vGPU of mps-20 yet, and too many requests wait for it already: in all, of the team, or of yours. Retry in a minute.`,
    ]);
    await fixture.unsubscribe(team, ours, true);
    expect(await waiting()).toEqual([]);
  });
});

describe('a person who requests for many teams', () => {
  const memberOf = async (caller: Partial<UserCaller>): Promise<ToldTeam> => {
    const { member, ...told } = await fixture.team();
    return { ...told, member: { ...member, ...caller } };
  };

  it('has as many that wait as one team; others wait beside them, and the operator as before', async () => {
    const many = await fixture.pool(
      { ...terms, replicas: 4, temporal_replicas: 48, overcommit: 1 },
      { nodeName: `node-${newId()}` },
    );
    const subscribe = (of: ToldTeam) => fixture.subscribe(of, { pool_id: many.pool_id });
    await subscribe(team);
    await fixture.settle();
    await fixture.query(`UPDATE gpu SET state = 'to_spatial', turns_used = 15, slots_used = 15 WHERE gpu_id = $1`, [
      many.gpu_ids[0],
    ]);
    const [heldBy, operator] = [newId(), newId()];
    for (let count = 0; count < maxWaiting.team; count += 1)
      expect(await subscribe(await memberOf({ userId: newId(), heldBy }))).toMatchObject({ status: 'subscribing' });
    const last = await memberOf({ userId: newId(), heldBy });
    const refused = await errorOf(subscribe(last));
    expect(refused.message).toContain('too many requests wait for it already');
    // Neither another member of the same team, nor whoever holds the keys, by themselves.
    for (const userId of [newId(), heldBy]) {
      const asked = await subscribe({ ...last, member: { ...last.member, userId, heldBy: undefined } });
      expect(asked).toMatchObject({ status: 'subscribing' });
      expect(JSON.stringify(asked)).not.toContain('requested');
    }
    await subscribe(await memberOf({ userId: operator, platformAdmin: true }));
    const rows = await fixture.query('SELECT DISTINCT requested_by FROM waiting_request ORDER BY 1');
    expect(rows).toContainEqual({ requested_by: `held/${heldBy}` });
    expect(rows).toContainEqual({ requested_by: null });
    expect(rows).not.toContainEqual({ requested_by: operator });
    await fixture.query('DELETE FROM waiting_request');
  });

  it('has the workloads of subscriptions that others made counted for them, and not those that others start', async () => {
    const many = await fixture.pool(
      { ...terms, replicas: 20, temporal_replicas: 48, overcommit: 16 },
      { nodeName: `node-${newId()}` },
    );
    const person = { userId: newId() };
    const [ours, theirs] = [await memberOf(person), await memberOf(person)];
    const asked = { pool_id: many.pool_id, vgpus: 100 };
    const [first, second] = [await fixture.subscribe(ours, asked), await fixture.subscribe(theirs, asked)];
    await fixture.settle();
    await fixture.start(ours, first, 20);
    await fixture.settle();
    await fixture.query(`UPDATE gpu SET state = 'to_spatial', turns_used = slots_used WHERE gpu_id = $1`, [
      many.gpu_ids[0],
    ]);
    for (let count = 0; count < maxWaiting.team; count += 1) await fixture.start(ours, first);
    expect((await errorOf(fixture.start(theirs, second))).code).toBe('insufficient_capacity');
    const colleague = { ...theirs, member: { ...theirs.member, userId: newId() } };
    expect((await fixture.start(colleague, second)).status).toBe('pending');
    // Those of pods count for whoever asked for the start, and for the team alone where nobody is said to have.
    const pod = { start: 1, subscription_id: second.subscription_id, pod_name: 'job', vgpus: 1 };
    const startPod = (by: object) =>
      fixture.ask(
        podWorkloads.start,
        { ...pod, pod_id: newId(), ...by },
        systemContext('pods', { deadlineMs: 60_000 }),
      );
    expect((await errorOf(startPod({ requested_by: person.userId }))).message).toContain('too many requests');
    expect((await startPod({})).status).toBe('pending');
    await fixture.query('DELETE FROM waiting_request');
  });
});

it('more of one team than may wait by now, whom a replica of another release let wait, are refused by no limit', async () => {
  const many = await fixture.pool(
    { ...terms, replicas: 20, temporal_replicas: 48, overcommit: 16 },
    { nodeName: `node-${newId()}` },
  );
  const other = await fixture.team();
  const asked = { pool_id: many.pool_id, vgpus: 100 };
  const [ours, theirs] = [await fixture.subscribe(team, asked), await fixture.subscribe(other, asked)];
  await fixture.settle();
  await start(20, team, ours);
  await fixture.settle();
  await fixture.query(`UPDATE gpu SET state = 'to_spatial', turns_used = slots_used WHERE gpu_id = $1`, [
    many.gpu_ids[0],
  ]);
  for (let count = 0; count < 10; count += 1) {
    await start(1, team, ours);
    await start(1, other, theirs);
  }
  await fixture.query('UPDATE waiting_request SET team_id = $1', [team.team_id]);
  const [first] = await waiting();
  await fixture.get(WaitingQueue).poll('workload', first?.workload_id ?? '');
  expect(await fixture.query('SELECT count(*)::int, count(refusal)::int AS refused FROM waiting_request')).toEqual([
    { count: 20, refused: 0 },
  ]);
});

describe('a subscription that meets a GPU in transition', () => {
  it('is subscribing with a reason until it is its turn, and then active', async () => {
    const plain = await fixture.pool({ ...terms, overcommit: 1 }, { nodeName: (nodeName = `node-${newId()}`) });
    pool = plain;
    const subscribe = () => fixture.subscribe(team, { pool_id: plain.pool_id });
    const [, , third] = [await subscribe(), await subscribe(), await subscribe()];
    await fixture.settle();
    await fault('vacate', 'busy');
    await fixture.unsubscribe(team, third);
    await fixture.during(4);
    const late = await subscribe();
    expect(late).toMatchObject({ status: 'subscribing', reason, vgpus_allocated: 1 });
    expect((await errorOf(fixture.subscribe(team, { pool_id: plain.pool_id, vgpus: 2 }))).code).toBe(
      'insufficient_capacity',
    );
    await freeDevice();
    await fixture.settle();
    expect(await fixture.subscription(team, late)).toMatchObject({ status: 'active', reason: null });
    expect(await waiting()).toEqual([]);
  });
});
