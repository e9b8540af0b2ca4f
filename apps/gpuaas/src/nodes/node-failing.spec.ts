import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { subscriptions } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { MachineWorkers } from '@atoll/state-machine';
import { errorOf, GpuaasFixture } from '../gpuaas-fixture.js';
import { NodesUnderTest } from './node-fixture.js';

let fixture: GpuaasFixture;
let desk: NodesUnderTest;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  desk = await NodesUnderTest.of(fixture);
});
afterAll(() => fixture.stop());

const nodes = () => fixture.get(MachineWorkers).workers[1];

describe('a node that cannot be initialised', () => {
  it('says why, and when it is tried again by itself', async () => {
    const node = await desk.register();
    await desk.breakInit(node, 'fail');
    await desk.command('initialise', node);
    await fixture.work();
    const { status, reason, retry_at } = await fixture.node(node.node_id);
    expect([status, reason]).toEqual(['init_failed', 'The node failed: init.']);
    expect(new Date(retry_at ?? 0).getTime()).toBeGreaterThan(Date.now());
    expect((await desk.historyOf(node)).at(-1)).toMatchObject({
      to_state: 'init_failed',
      event: 'FAILED',
      reason: 'The node failed: init.',
    });
  });

  it('is tried again by time, after waits that double up to ten minutes', async () => {
    const node = await desk.register();
    await desk.breakInit(node, 'fail');
    await desk.command('initialise', node);
    const waits: number[] = [];
    for (let failures = 1; failures <= 7; failures += 1) {
      await fixture.work();
      const [wait] = await fixture.query<{ seconds: number; state: string }>(
        'SELECT state, 10 * round(extract(epoch FROM parked_until - entered_at) / 10)::int AS seconds FROM node WHERE node_id = $1',
        [node.node_id],
      );
      expect(wait?.state).toBe('init_failed');
      waits.push(wait?.seconds ?? 0);
      await fixture.pass((wait?.seconds ?? 0) + 10);
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 600, 600]);
    await desk.mend(node);
    await fixture.work();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'ready', reason: null, retry_at: null });
  });

  it('may be cordoned: it keeps its reason, is left alone by the platform, and is what it was once it is uncordoned', async () => {
    const node = await desk.nodeThatIs('init_failed');
    const { reason } = await fixture.node(node.node_id);
    expect(await desk.command('cordon', node)).toMatchObject({ status: 'cordoned', reason, retry_at: null });
    expect((await desk.command('cordon', node)).status).toBe('cordoned');
    await fixture.pass(1_000);
    await fixture.settle();
    expect((await fixture.node(node.node_id)).status).toBe('cordoned');
    const uncordoned = await desk.command('uncordon', node);
    expect(uncordoned).toMatchObject({ status: 'init_failed', reason, retry_at: expect.any(String) });
    await fixture.pass(60);
    await fixture.work();
    expect((await fixture.node(node.node_id)).status).toBe('ready');
  });

  it('and is cordoned may be initialised by hand, and is cordoned still', async () => {
    const node = await desk.nodeThatIs('init_failed');
    await desk.command('cordon', node);
    expect((await desk.command('initialise', node)).status).toBe('initialising');
    await fixture.work();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'cordoned', reason: null });
    expect((await desk.command('uncordon', node)).status).toBe('ready');
  });

  it('is tried again at once by hand', async () => {
    const node = await desk.nodeThatIs('init_failed');
    expect(await desk.command('initialise', node)).toMatchObject({ status: 'initialising', retry_at: null });
    await fixture.work();
    expect((await fixture.node(node.node_id)).status).toBe('ready');
  });

  it('is tried three times by itself where the node only refused, before it has failed', async () => {
    const node = await desk.register();
    await desk.breakInit(node, 'refuse', 2);
    await desk.command('initialise', node);
    // Step by step: where the machine is slow, `work` goes on to the next tries.
    do await nodes()?.doNext();
    while ((await fixture.node(node.node_id)).reason === null);
    expect(await fixture.node(node.node_id)).toMatchObject({
      status: 'initialising',
      reason: 'The node refused: init.',
    });
    await fixture.settle();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'ready', reason: null });
    const other = await desk.register();
    await desk.breakInit(other, 'refuse', 3);
    await desk.command('initialise', other);
    await fixture.settle();
    expect(await fixture.node(other.node_id)).toMatchObject({
      status: 'init_failed',
      reason: 'The node refused: init.',
    });
  });

  it('is not ready where the node says so and does not have its GPUs', async () => {
    const node = await desk.register();
    await desk.breakInit(node, 'lie', 1_000);
    await desk.command('initialise', node);
    await fixture.settle();
    const { status, reason } = await fixture.node(node.node_id);
    expect([status, reason]).toEqual([
      'init_failed',
      `The node reports that it is ready, but lacks ${node.gpus[0]?.uuid}.`,
    ]);
  });

  it('may be known by its name', async () => {
    const node = await desk.register(`gpu-${newId()}.init-fail`);
    await desk.command('initialise', node);
    await fixture.work();
    expect((await fixture.node(node.node_id)).status).toBe('init_failed');
  });
});

describe('a node that is cordoned', () => {
  it('keeps who is there, and takes nobody new; with others in the pool the next one goes there', async () => {
    const team = await fixture.team();
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id });
    await fixture.settle();
    await desk.command('cordon', pool);
    expect((await fixture.start(team, held)).status).toBe('pending');
    await fixture.settle();
    expect((await errorOf(fixture.subscribe(team, { pool_id: pool.pool_id }))).code).toBe('insufficient_capacity');
    expect((await fixture.gpu(pool)).slices).toMatchObject([
      { subscription_id: held.subscription_id, state: 'occupied' },
    ]);
    await fixture.unsubscribe(team, held, true);
    await fixture.settle();
    expect((await fixture.gpu(pool)).slices).toEqual([]);
  });

  it('stays so through a reset, until it is uncordoned', async () => {
    const node = await desk.nodeThatIs('cordoned');
    await desk.command('reset', node);
    await fixture.settle();
    expect((await fixture.node(node.node_id)).status).toBe('cordoned');
    expect((await desk.command('uncordon', node)).status).toBe('ready');
    await desk.command('reset', node);
    await fixture.settle();
    expect((await fixture.node(node.node_id)).status).toBe('ready');
  });
});

describe('a reset', () => {
  it('is refused while anything of the node is held, reserved or running, and says how much', async () => {
    const team = await fixture.team();
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 3 });
    for (let look = 0; look < 2; look += 1) {
      const { code, message } = await errorOf(desk.command('reset', pool));
      expect([code, message]).toEqual([
        'conflict',
        '3 slices of the node are held by subscriptions. Cordon the node, and reset it when they have ended.',
      ]);
      await fixture.settle();
    }
    expect((await fixture.node(pool.node_id)).status).toBe('ready');
    await fixture.call(subscriptions.resize, { subscription_id: held.subscription_id, vgpus: 1 }, team.member);
    expect((await errorOf(desk.command('reset', pool))).message).toMatch(
      /^1 slice of the node is held by subscriptions\. /,
    );
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    expect((await desk.command('reset', pool)).status).toBe('initialising');
  });

  it('takes the GPUs of the node out of service and brings them back as configured', async () => {
    const team = await fixture.team();
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    await desk.command('reset', pool);
    expect((await errorOf(fixture.subscribe(team, { pool_id: pool.pool_id }))).code).toBe('insufficient_capacity');
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', transition: null, reason: null });
    expect((await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 4 })).vgpus_allocated).toBe(4);
  });

  it('that does not succeed is tried again as a reset, and after an initialise by hand as that', async () => {
    const node = await desk.nodeThatIs('ready');
    await desk.breakInit(node, 'fail', 1);
    await desk.command('reset', node);
    await fixture.work();
    const isReset = async () =>
      (await fixture.query<{ is_reset: boolean }>('SELECT is_reset FROM node WHERE node_id = $1', [node.node_id]))[0]
        ?.is_reset;
    expect([(await fixture.node(node.node_id)).status, await isReset()]).toEqual(['init_failed', true]);
    await desk.command('initialise', node);
    expect(await isReset()).toBe(false);
    await fixture.settle();
    expect((await fixture.node(node.node_id)).status).toBe('ready');
  });

  it('and a subscription that comes at the same time: one of them is refused', async () => {
    const team = await fixture.team();
    for (let round = 0; round < 5; round += 1) {
      const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 });
      const [reset, subscribe] = await Promise.allSettled([
        desk.command('reset', pool),
        fixture.subscribe(team, { pool_id: pool.pool_id }),
      ]);
      expect([reset.status, subscribe.status].toSorted()).toEqual(['fulfilled', 'rejected']);
      await fixture.settle();
    }
  });
});
