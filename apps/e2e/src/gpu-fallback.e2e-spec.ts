import { describe, expect, it } from '@jest/globals';
import { fresh, query, until } from './client.js';
import { createNode, createPool, createTenant, type GpuView } from './gpu-inventory.js';

/** A node of one GPU, in a pool that cuts it by these terms and lets it fall back. */
async function poolOf(terms: object) {
  const name = fresh('gpu');
  const node = await createNode({ name });
  const { poolId } = await createPool(node, { sharing_mode: 'Spatial', allow_fallback: true, ...terms });
  const gpu = async (): Promise<GpuView> => {
    const [found] = (await node.read()).gpus;
    if (!found) throw new Error('The node has no GPU.');
    return found;
  };
  /** The GPU when it is at rest in this mode. */
  const atRestIn = (mode: string) => until(gpu, (found) => found.mode === mode && found.transition === null);
  /** The next switch goes on until it is let go, so that it can be seen. */
  const holdSwitch = () =>
    query(
      `INSERT INTO gpuaas.simulated_fault (node_name, operation, kind, times) VALUES ($1, 'switch', 'hang', 1)
       ON CONFLICT (node_name, operation) DO UPDATE SET times = 1`,
      [name],
    );
  const letGo = () =>
    until(
      () =>
        query(
          `UPDATE gpuaas.simulated_device device SET ready_at = clock_timestamp() FROM gpuaas.gpu
           WHERE gpu.uuid = device.uuid AND gpu.gpu_id = $1 AND device.ready_at = 'infinity' RETURNING device.uuid`,
          [node.gpuIds[0]],
        ),
      (found) => found.length === 1,
    );
  return { ...node, poolId, gpu, atRestIn, holdSwitch, letGo };
}

const workloadsOf = (held: GpuView['tenants']) => held.map(({ workload_id }) => workload_id).toSorted();
const subscriptionsOf = (held: GpuView['tenants']) => held.map(({ subscription_id }) => subscription_id).toSorted();
const temporal = { mode: 'Temporal', origin: 'dynamic_fallback', transition: null, reason: null, slices: [] };
const spatial = { mode: 'Spatial', origin: 'configured', transition: null, reason: null, tenants: [] };

describe('a GPU that MPS cuts in two', () => {
  it('with overcommit is lent in turns when a third workload comes, and cut again when one of them stops', async () => {
    const pool = await poolOf({ mechanism: 'mps', replicas: 2, overcommit: 2, temporal_replicas: 4 });
    const tenant = await createTenant('Fallback');
    const { subscription_id: id } = (await tenant.subscribe({ pool_id: pool.poolId, vgpus: 3 })).body;
    const tooMany = await tenant.subscribe({ pool_id: pool.poolId, vgpus: 2 });
    expect([tooMany.status, tooMany.body.code]).toEqual([422, 'insufficient_capacity']);
    expect(tooMany.body.detail).toContain('Available: 1 of mps-2.');
    expect((await tenant.subscribe({ pool_id: pool.poolId, vgpus: 1 })).status).toBe(202);
    const soldOut = await tenant.subscribe({ pool_id: pool.poolId, vgpus: 1 });
    expect([soldOut.status, soldOut.body.code]).toEqual([422, 'insufficient_capacity']);
    expect(soldOut.body.detail).toContain('Available: nothing.');

    await tenant.subscribed(id);
    const one = (await tenant.start(id)).body.workload_id;
    const two = (await tenant.start(id)).body.workload_id;
    await tenant.runs(one);
    await tenant.runs(two);
    const cut = await pool.gpu();
    expect(cut).toMatchObject(spatial);
    expect(cut.slices.map(({ start, state }) => [start, state]).toSorted()).toEqual([
      [0, 'occupied'],
      [1, 'occupied'],
    ]);

    await pool.holdSwitch();
    const three = await tenant.start(id);
    const waiting = { status: 'pending', reason: 'Waiting for a GPU to change its sharing mode.' };
    expect([three.status, three.body]).toMatchObject([202, waiting]);
    expect(await pool.gpu()).toMatchObject({ mode: 'Spatial', transition: 'to_temporal' });
    expect(await tenant.workload(three.body.workload_id)).toMatchObject(waiting);
    await pool.letGo();
    await tenant.runs(three.body.workload_id);
    const lent = await pool.atRestIn('Temporal');
    expect(lent).toMatchObject(temporal);
    expect(workloadsOf(lent.tenants)).toEqual([one, two, three.body.workload_id].toSorted());

    await pool.holdSwitch();
    expect((await tenant.stop(three.body.workload_id)).status).toBe(202);
    expect(await until(pool.gpu, ({ transition }) => transition !== null)).toMatchObject({
      mode: 'Temporal',
      origin: 'dynamic_fallback',
      transition: 'to_spatial',
    });
    // It meets the GPU on its way back, where both halves are taken: it waits, and the GPU falls back once more.
    const four = await tenant.start(id);
    expect([four.status, four.body]).toMatchObject([202, waiting]);
    await pool.letGo();
    await tenant.runs(four.body.workload_id);
    const again = await pool.atRestIn('Temporal');
    expect(workloadsOf(again.tenants)).toEqual([one, two, four.body.workload_id].toSorted());
    await tenant.stop(four.body.workload_id);
    const back = await pool.atRestIn('Spatial');
    expect(back).toMatchObject(spatial);
    expect(workloadsOf(back.slices)).toEqual([one, two].toSorted());

    await tenant.stop(one);
    await tenant.runs(one, 'stopped');
    const next = await tenant.start(id);
    expect(next.status).toBe(202);
    await tenant.runs(next.body.workload_id);
    expect(await pool.gpu()).toMatchObject(spatial);
  });

  it('without overcommit is lent in turns to a third subscription, and cut again when one of them ends', async () => {
    const pool = await poolOf({ mechanism: 'mps', replicas: 2, temporal_replicas: 3 });
    const tenant = await createTenant('Fallback');
    const offered = async () => (await tenant.offers(pool.gpuaasId)).map(({ available_vgpus }) => available_vgpus);
    const subscribe = async () => (await tenant.subscribe({ pool_id: pool.poolId, vgpus: 1 })).body.subscription_id;
    expect(await offered()).toEqual([2]);
    const one = await subscribe();
    const two = await subscribe();
    await tenant.subscribed(one);
    await tenant.subscribed(two);
    expect(await offered()).toEqual([0]);
    const cut = await pool.gpu();
    expect(cut).toMatchObject({ ...spatial, slices: [{ state: 'leased' }, { state: 'leased' }] });
    expect(subscriptionsOf(cut.slices)).toEqual([one, two].toSorted());

    const three = await subscribe();
    await tenant.subscribed(three);
    const lent = await pool.atRestIn('Temporal');
    expect(lent).toMatchObject(temporal);
    expect(subscriptionsOf(lent.tenants)).toEqual([one, two, three].toSorted());
    const full = await tenant.subscribe({ pool_id: pool.poolId, vgpus: 1 });
    expect([full.status, full.body.code]).toEqual([422, 'insufficient_capacity']);
    expect(full.body.detail).toContain('Available: nothing.');

    const { body: workload } = await tenant.start(two);
    await tenant.runs(workload.workload_id);
    expect((await tenant.unsubscribe(one)).status).toBe(200);
    await tenant.subscribed(one, 'unsubscribed');
    const back = await pool.atRestIn('Spatial');
    expect(back).toMatchObject(spatial);
    expect(back.slices.map(({ subscription_id, workload_id }) => [subscription_id, workload_id]).toSorted()).toEqual(
      [
        [two, workload.workload_id],
        [three, null],
      ].toSorted(),
    );
    expect(await offered()).toEqual([0]);

    await tenant.unsubscribe(three);
    await tenant.subscribed(three, 'unsubscribed');
    expect(await offered()).toEqual([1]);
    const four = await subscribe();
    await tenant.subscribed(four);
    expect(await pool.gpu()).toMatchObject(spatial);
    expect((await tenant.workload(workload.workload_id)).status).toBe('running');
  });
});

describe('a GPU that MIG cuts', () => {
  it('falls back only while nothing of it is held, and returns when the last one has gone', async () => {
    const pool = await poolOf({ mechanism: 'mig', profiles: ['1g.10gb', '3g.40gb'], overcommit: 2 });
    const tenant = await createTenant('Fallback of MIG');
    const { subscription_id: large } = (await tenant.subscribe({ pool_id: pool.poolId, vgpus: 3, profile: '3g.40gb' }))
      .body;
    const tooMany = await tenant.subscribe({ pool_id: pool.poolId, vgpus: 2, profile: '3g.40gb' });
    expect([tooMany.status, tooMany.body.detail]).toEqual([
      422,
      expect.stringContaining('3 of 1g.10gb, or 1 of 3g.40gb'),
    ]);
    const { subscription_id: small } = (await tenant.subscribe({ pool_id: pool.poolId, vgpus: 1 })).body;
    await tenant.subscribed(large);
    expect(await tenant.subscribed(small)).toMatchObject({ profile: '1g.10gb', v_ram_gb: 10 });

    const { body: first } = await tenant.start(large);
    await tenant.runs(first.workload_id);
    const refused = await tenant.start(large, { vgpus: 2 });
    expect([refused.status, refused.body.code]).toEqual([422, 'insufficient_capacity']);
    expect(refused.body.detail).toContain('1 of 3g.40gb');
    await tenant.stop(first.workload_id);
    await tenant.runs(first.workload_id, 'stopped');

    const { body: wide } = await tenant.start(large, { vgpus: 3 });
    const { body: narrow } = await tenant.start(small);
    await tenant.runs(wide.workload_id);
    await tenant.runs(narrow.workload_id);
    const lent = await pool.atRestIn('Temporal');
    expect(lent).toMatchObject(temporal);
    expect(workloadsOf(lent.tenants)).toEqual(
      [wide, wide, wide, narrow].map(({ workload_id }) => workload_id).toSorted(),
    );

    await tenant.stop(wide.workload_id);
    await tenant.runs(wide.workload_id, 'stopped');
    expect(await pool.gpu()).toMatchObject({
      ...temporal,
      tenants: [{ subscription_id: small, workload_id: narrow.workload_id }],
    });
    await tenant.stop(narrow.workload_id);
    expect(await pool.atRestIn('Spatial')).toMatchObject({ ...spatial, slices: [] });

    const { body: next } = await tenant.start(large, { vgpus: 2 });
    await tenant.runs(next.workload_id);
    const cut = await pool.gpu();
    expect(cut).toMatchObject(spatial);
    expect(cut.slices.map(({ profile, start, size }) => [profile, start, size]).toSorted()).toEqual([
      ['3g.40gb', 0, 4],
      ['3g.40gb', 4, 4],
    ]);
  });
});
