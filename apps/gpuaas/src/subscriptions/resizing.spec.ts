import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type UsageTold } from '@atoll/contracts/billing';
import { subscriptions } from '@atoll/contracts/gpuaas';
import { teamChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let nodeName: string;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
beforeEach(async () => {
  team = await fixture.team();
  nodeName = `node-${newId()}`;
});
afterAll(() => fixture.stop());

type Held = { subscription_id: string };

const sevenSlices = { profiles: ['1g.10gb'] };
const resize = ({ subscription_id }: Held, vgpus: number, caller = team.member) =>
  fixture.call(subscriptions.resize, { subscription_id, vgpus }, caller);
const shown = (held: Held) => fixture.subscription(team, held);
const leases = async ({ subscription_id }: Held) =>
  (await fixture.query('SELECT FROM lease WHERE subscription_id = $1', [subscription_id])).length;
const inject = (operation: 'confirm' | 'vacate' | 'occupy', kind: 'fail' | 'refuse', times = 1) =>
  fixture.get(SimulatedFaults).inject(nodeName, operation, kind, times);

async function active(pool_id: string, vgpus: number): Promise<Held> {
  const held = await fixture.subscribe(team, { pool_id, vgpus });
  await fixture.settle();
  expect(await shown(held)).toMatchObject({ status: 'active', resize: null });
  return held;
}

/** What of a pool can still be subscribed to, of its smallest profile. */
async function left(poolId: string): Promise<number> {
  const { message } = await errorOf(fixture.subscribe(team, { pool_id: poolId, vgpus: 1_000 }));
  return Number(/Available: (\d+)/.exec(message)?.[1] ?? 0);
}

/** The quantities that billing was told, in their order. */
async function told({ subscription_id }: Held): Promise<string[]> {
  while ((await fixture.query('SELECT FROM outbox')).length > 0)
    await new Promise((resolve) => setTimeout(resolve, 10));
  return fixture.events
    .filter(({ name }) => name === 'gpuaas.usage_told')
    .flatMap(({ payload }) => (payload as UsageTold).facts)
    .filter(({ resource_id }) => resource_id === `gpuaas_pool:${subscription_id}`)
    .sort((one, other) => (one.sequence ?? 0) - (other.sequence ?? 0))
    .map(({ quantity }) => quantity);
}

describe('a change to more vGPUs', () => {
  it('reserves them at once, and takes effect and is billed when the nodes have confirmed them', async () => {
    const { pool_id } = await fixture.pool(sevenSlices);
    const held = await active(pool_id, 2);
    expect(await resize(held, 6)).toMatchObject({
      status: 'active',
      vgpus_allocated: 2,
      resize: { vgpus: 6, status: 'pending', reason: null },
    });
    expect([await leases(held), await left(pool_id), await told(held)]).toEqual([6, 1, ['2']]);
    await fixture.settle();
    expect(await shown(held)).toMatchObject({ status: 'active', reason: null, vgpus_allocated: 6, resize: null });
    expect([await leases(held), await told(held)]).toEqual([6, ['2', '6']]);
  });

  it('keeps the instance ids that the nodes told of what was added', async () => {
    const { pool_id } = await fixture.pool(sevenSlices);
    const held = await active(pool_id, 1);
    await resize(held, 3);
    const known = () =>
      fixture.query('SELECT FROM lease WHERE subscription_id = $1 AND gpu_instance_id IS NOT NULL', [
        held.subscription_id,
      ]);
    expect(await known()).toHaveLength(1);
    await fixture.settle();
    expect(await known()).toHaveLength(3);
  });

  it('leaves the old size where a node refuses, and says why; what was reserved is free again, and another change may follow', async () => {
    const { pool_id } = await fixture.pool(sevenSlices, { nodeName });
    const held = await active(pool_id, 2);
    await inject('confirm', 'fail');
    await resize(held, 5);
    await fixture.settle();
    const failed = { vgpus: 5, status: 'failed', reason: 'The node failed: confirm.' };
    expect(await shown(held)).toMatchObject({ status: 'active', reason: null, vgpus_allocated: 2, resize: failed });
    expect([await leases(held), await left(pool_id), await told(held)]).toEqual([2, 5, ['2']]);
    await resize(held, 4);
    await fixture.settle();
    expect(await shown(held)).toMatchObject({ vgpus_allocated: 4, resize: null });
  });

  it('that has failed is not shown any more once the present size was asked for', async () => {
    const { pool_id } = await fixture.pool(sevenSlices, { nodeName });
    const held = await active(pool_id, 2);
    await inject('confirm', 'fail');
    await resize(held, 5);
    await fixture.settle();
    expect(await resize(held, 2)).toMatchObject({ vgpus_allocated: 2, resize: null });
  });

  it('is tried several times while a node refuses, and says so meanwhile', async () => {
    const { pool_id } = await fixture.pool(sevenSlices, { nodeName });
    const held = await active(pool_id, 1);
    await inject('confirm', 'refuse', 4);
    await resize(held, 2);
    await fixture.work();
    expect((await shown(held)).resize).toEqual({ vgpus: 2, status: 'pending', reason: 'The node refused: confirm.' });
    await fixture.settle();
    expect(await shown(held)).toMatchObject({ vgpus_allocated: 2, resize: null });
  });

  it('has failed also where a node does not give back what was added; its GPUs are initialised then', async () => {
    const pool = await fixture.pool(sevenSlices, { nodeName });
    const held = await active(pool.pool_id, 1);
    await inject('confirm', 'fail');
    await inject('vacate', 'fail');
    await resize(held, 3);
    await fixture.work();
    expect(await shown(held)).toMatchObject({
      status: 'active',
      vgpus_allocated: 1,
      resize: { vgpus: 3, status: 'failed', reason: 'The node failed: confirm.' },
    });
    await fixture.work();
    expect((await fixture.node(pool.node_id)).status).toBe('init_failed');
    expect(await leases(held)).toBe(1);
  });

  it('gives no workload anything of it before it is confirmed', async () => {
    const { pool_id } = await fixture.pool(sevenSlices);
    const held = await active(pool_id, 1);
    await resize(held, 3);
    expect((await errorOf(fixture.start(team, held, 2))).message).toContain('Available: 1.');
    await fixture.start(team, held);
    await fixture.settle();
    expect((await fixture.start(team, held, 2)).status).toBe('pending');
  });

  it('may meet a GPU in transition, and waits for it with the reason', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 4 });
    const held = await active(pool.pool_id, 2);
    const pending = { vgpus: 3, status: 'pending', reason: 'Waiting for a GPU to change its sharing mode.' };
    expect((await resize(held, 3)).resize).toEqual(pending);
    expect(await fixture.gpu(pool)).toMatchObject({ transition: 'to_temporal' });
    await fixture.settle();
    expect(await shown(held)).toMatchObject({ vgpus_allocated: 3, resize: null });
    expect((await fixture.gpu(pool)).tenants).toHaveLength(3);
  });

  it('waits in the queue of a pool whose GPU returns', async () => {
    const pool = await fixture.pool(
      { mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 4 },
      { nodeName },
    );
    const [held, third] = [await active(pool.pool_id, 2), await active(pool.pool_id, 1)];
    await fixture.get(SimulatedFaults).inject(nodeName, 'observe', 'busy', 3);
    await fixture.unsubscribe(team, third);
    await fixture.work();
    expect(await fixture.gpu(pool)).toMatchObject({ transition: 'to_spatial' });
    expect((await resize(held, 4)).resize).toMatchObject({
      status: 'pending',
      reason: expect.stringContaining('Waiting'),
    });
    expect(
      await fixture.query('SELECT FROM waiting_request WHERE subscription_id = $1', [held.subscription_id]),
    ).toHaveLength(1);
    expect((await errorOf(fixture.subscribe(team, { pool_id: pool.pool_id }))).code).toBe('insufficient_capacity');
    await fixture.settle();
    expect(await shown(held)).toMatchObject({ vgpus_allocated: 4, resize: null });
  });

  it('to more than fits changes nothing, and says what would be accepted', async () => {
    const { pool_id, pool_name } = await fixture.pool(sevenSlices);
    const held = await active(pool_id, 2);
    const { code, message } = await errorOf(resize(held, 8));
    expect([code, message]).toEqual([
      'insufficient_capacity',
      `Pool ${pool_name} has no capacity for 6 vGPUs of 1g.10gb. Available: 5 of 1g.10gb.`,
    ]);
    expect(await shown(held)).toMatchObject({ status: 'active', vgpus_allocated: 2, resize: null });
    expect(await leases(held)).toBe(2);
  });

  it('is refused while another is pending', async () => {
    const { pool_id } = await fixture.pool(sevenSlices);
    const held = await active(pool_id, 2);
    await resize(held, 4);
    for (const vgpus of [1, 2, 3, 4, 5]) {
      const { code, message } = await errorOf(resize(held, vgpus));
      expect([code, message]).toEqual([
        'conflict',
        'A change to 4 vGPUs is pending: wait until it has succeeded or failed.',
      ]);
    }
    await fixture.settle();
    expect((await resize(held, 5)).resize).toMatchObject({ vgpus: 5 });
  });

  it('ends with the subscription: nothing of it stays', async () => {
    const { pool_id } = await fixture.pool(sevenSlices);
    const held = await active(pool_id, 1);
    await resize(held, 4);
    expect(await fixture.unsubscribe(team, held)).toMatchObject({ status: 'unsubscribing', resize: null });
    await fixture.settle();
    expect(await shown(held)).toMatchObject({ status: 'unsubscribed', vgpus_allocated: 0, resize: null });
    expect([await leases(held), await left(pool_id), await told(held)]).toEqual([0, 7, ['1', '0']]);
  });
});

describe('a change to fewer vGPUs', () => {
  it('gives them back and is billed at once', async () => {
    const { pool_id } = await fixture.pool(sevenSlices);
    const held = await active(pool_id, 6);
    expect(await resize(held, 1)).toMatchObject({ status: 'active', vgpus_allocated: 1, resize: null });
    expect([await leases(held), await left(pool_id), await told(held)]).toEqual([1, 6, ['6', '1']]);
  });

  it('than are in use is refused, and what runs goes on', async () => {
    const { pool_id } = await fixture.pool(sevenSlices);
    const held = await active(pool_id, 4);
    await fixture.start(team, held, 3);
    const { code, message } = await errorOf(resize(held, 2));
    expect([code, message]).toEqual([
      'conflict',
      '3 of its 4 vGPUs are in use: stop workloads first, or keep at least 3.',
    ]);
    expect(await resize(held, 3)).toMatchObject({ vgpus_allocated: 3 });
    const used = 'SELECT FROM lease WHERE subscription_id = $1 AND workload_id IS NOT NULL';
    expect(await fixture.query(used, [held.subscription_id])).toHaveLength(3);
  });
});

describe('a change', () => {
  it('to the present size is none: no line of history, nothing told', async () => {
    const { pool_id } = await fixture.pool(sevenSlices);
    const held = await active(pool_id, 2);
    const events = () =>
      fixture.query(`SELECT FROM machine_history WHERE machine = 'subscription' AND instance = $1`, [
        held.subscription_id,
      ]);
    const before = (await events()).length;
    expect(await resize(held, 2)).toMatchObject({ vgpus_allocated: 2 });
    expect([(await events()).length, await told(held)]).toEqual([before, ['2']]);
  });

  it('with overcommit is one of the entitlement, within what is sold; what is pending counts as sold', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 2, overcommit: 3 });
    const held = await active(pool_id, 2);
    await resize(held, 6);
    expect(await left(pool_id)).toBe(0);
    // Also while it is being undone.
    for (const state of ['reverting', 'growing']) {
      await fixture.query('UPDATE subscription SET state = $2 WHERE subscription_id = $1', [
        held.subscription_id,
        state,
      ]);
      expect([state, await left(pool_id)]).toEqual([state, 0]);
    }
    await fixture.settle();
    expect(await shown(held)).toMatchObject({ vgpus_allocated: 6, resize: null });
    expect((await errorOf(resize(held, 7))).code).toBe('insufficient_capacity');
    expect(await resize(held, 1)).toMatchObject({ vgpus_allocated: 1 });
    expect([await left(pool_id), await leases(held)]).toEqual([5, 0]);
  });

  it('is for active ones', async () => {
    const { pool_id } = await fixture.pool(sevenSlices);
    const held = await fixture.subscribe(team, { pool_id });
    expect((await errorOf(resize(held, 2))).message).toBe(
      'The subscription is subscribing; only an active subscription can be changed.',
    );
    await fixture.settle();
    await fixture.unsubscribe(team, held);
    expect((await errorOf(resize(held, 2))).code).toBe('conflict');
    await fixture.settle();
    expect((await errorOf(resize(held, 2))).message).toContain('is unsubscribed');
  });

  it('to more is refused to a suspended team, to fewer is not', async () => {
    const { pool_id } = await fixture.pool(sevenSlices);
    const held = await active(pool_id, 3);
    const told = {
      team_id: team.team_id,
      name: 'x',
      workspaces: [{ id: team.workspace_id, name: 'default' }],
      status: 'active' as const,
    };
    await fixture.tell(teamChanged, { ...told, revision: 2, is_suspended: true });
    expect((await errorOf(resize(held, 4))).code).toBe('team_suspended');
    expect(await resize(held, 2)).toMatchObject({ vgpus_allocated: 2 });
  });

  it('by many at once is one: the others are refused, and it ends at a size asked for, with its slices', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 12 });
    const held = await active(pool_id, 1);
    const sizes = [5, 3, 9, 2, 12, 7];
    const answers = await Promise.allSettled(sizes.map((vgpus) => resize(held, vgpus)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await fixture.settle();
    const { vgpus_allocated } = await shown(held);
    expect(sizes).toContain(vgpus_allocated);
    expect([await leases(held), await left(pool_id)]).toEqual([vgpus_allocated, 12 - vgpus_allocated]);
  });

  it('of many subscriptions is done for twice as many callers at once as the service has connections', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 48 }, { count: 2 });
    const held = await Promise.all(Array.from({ length: 40 }, () => fixture.subscribe(team, { pool_id })));
    await fixture.settle();
    const changed = await Promise.all(held.map((each) => resize(each, 2)));
    expect(new Set(changed.map(({ resize }) => resize?.vgpus))).toEqual(new Set([2]));
    expect(await left(pool_id)).toBe(16);
  });
});
