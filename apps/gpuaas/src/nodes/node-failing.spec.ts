import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { nodes, regions, type GpuNode, type NodeStatus } from '@atoll/contracts';
import { newId } from '@atoll/database';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { errorOf, GpuaasFixture } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let gpuaas_id: string;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  const { region_id } = await fixture.call(regions.create, { region_name: 'Kathmandu' });
  ({ gpuaas_id } = await fixture.call(regions.createGpuaas, { region_id, name: 'a' }));
});
afterAll(() => fixture.stop());

type Command = 'initialise' | 'reset' | 'cordon' | 'uncordon';

const command = (name: Command, { node_id }: { node_id: string }, caller?: object) => fixture.call(nodes[name], { node_id }, caller);
const register = (node_name = `node-${newId()}`, gpus = [{ board: 'A100-80GB', count: 1 }]) =>
  fixture.call(nodes.register, { gpuaas_id, node_name, gpus });
const mend = ({ node_name }: GpuNode) => fixture.get(SimulatedFaults).mend(node_name);
const breakInit = ({ node_name }: GpuNode, kind: 'fail' | 'lie' | 'refuse' | 'hang', times = 1_000) =>
  fixture.get(SimulatedFaults).inject(node_name, 'init', kind, times);

/** A node in this status, by commands alone. */
async function nodeThatIs(status: NodeStatus): Promise<GpuNode> {
  const node = await register();
  if (status === 'registered') return node;
  if (status === 'init_failed') await breakInit(node, 'fail');
  await command('initialise', node);
  if (status === 'initialising') return fixture.node(node.node_id);
  await fixture.work();
  if (status === 'init_failed') await mend(node);
  if (status === 'cordoned') await command('cordon', node);
  const found = await fixture.node(node.node_id);
  expect(found.status).toBe(status);
  return found;
}

interface Line {
  from_state: string | null;
  to_state: string;
  event: string | null;
  actor: string;
  reason: string | null;
  request_id: string | null;
}

const historyOf = ({ node_id }: GpuNode) =>
  fixture.query<Line>(
    `SELECT from_state, to_state, event, actor, reason, request_id FROM machine_history WHERE machine = 'node' AND instance = $1 ORDER BY id`,
    [node_id],
  );

describe('a node that cannot be initialised', () => {
  it('says why, and when it is tried again by itself', async () => {
    const node = await register();
    await breakInit(node, 'fail');
    await command('initialise', node);
    await fixture.work();
    const { status, reason, retry_at } = await fixture.node(node.node_id);
    expect([status, reason]).toEqual(['init_failed', 'The node failed: init.']);
    expect(new Date(retry_at ?? 0).getTime()).toBeGreaterThan(Date.now());
    expect((await historyOf(node)).at(-1)).toMatchObject({ to_state: 'init_failed', event: 'FAILED', reason: 'The node failed: init.' });
  });

  it('is tried again by time, after waits that double up to ten minutes', async () => {
    const node = await register();
    await breakInit(node, 'fail');
    await command('initialise', node);
    const waits: number[] = [];
    for (let failures = 1; failures <= 7; failures += 1) {
      await fixture.work();
      const [wait] = await fixture.query<{ seconds: number; state: string }>(
        'SELECT state, round(extract(epoch FROM due_at - entered_at))::int AS seconds FROM node WHERE node_id = $1',
        [node.node_id],
      );
      expect(wait?.state).toBe('init_failed');
      waits.push(wait?.seconds ?? 0);
      await fixture.pass((wait?.seconds ?? 0) + 1);
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 600, 600]);
    await mend(node);
    await fixture.work();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'ready', reason: null, retry_at: null });
  });

  it('is tried again at once by hand', async () => {
    const node = await nodeThatIs('init_failed');
    expect(await command('initialise', node)).toMatchObject({ status: 'initialising', retry_at: null });
    await fixture.work();
    expect((await fixture.node(node.node_id)).status).toBe('ready');
  });

  it('is tried three times by itself where the node only refused, before it has failed', async () => {
    const node = await register();
    await breakInit(node, 'refuse', 2);
    await command('initialise', node);
    await fixture.work();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'initialising', reason: 'The node refused: init.' });
    await fixture.settle();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'ready', reason: null });
    const other = await register();
    await breakInit(other, 'refuse', 3);
    await command('initialise', other);
    await fixture.settle();
    expect(await fixture.node(other.node_id)).toMatchObject({ status: 'init_failed', reason: 'The node refused: init.' });
  });

  it('is not ready where the node says so and does not have its GPUs', async () => {
    const node = await register();
    await breakInit(node, 'lie', 1_000);
    await command('initialise', node);
    await fixture.settle();
    const { status, reason } = await fixture.node(node.node_id);
    expect([status, reason]).toEqual(['init_failed', `The node says that it is ready, and does not have ${node.gpus[0]?.uuid}.`]);
  });

  it('may be known by its name', async () => {
    const node = await register(`gpu-${newId()}.init-fail`);
    await command('initialise', node);
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
    await command('cordon', pool);
    expect((await fixture.start(team, held)).status).toBe('pending');
    await fixture.settle();
    expect((await errorOf(fixture.subscribe(team, { pool_id: pool.pool_id }))).code).toBe('insufficient_capacity');
    expect((await fixture.gpu(pool)).slices).toMatchObject([{ subscription_id: held.subscription_id, state: 'occupied' }]);
    await fixture.unsubscribe(team, held, true);
    await fixture.settle();
    expect((await fixture.gpu(pool)).slices).toEqual([]);
  });

  it('stays so through a reset, until it is uncordoned', async () => {
    const node = await nodeThatIs('cordoned');
    await command('reset', node);
    await fixture.settle();
    expect((await fixture.node(node.node_id)).status).toBe('cordoned');
    expect((await command('uncordon', node)).status).toBe('ready');
    await command('reset', node);
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
      const { code, message } = await errorOf(command('reset', pool));
      expect([code, message]).toEqual([
        'conflict',
        '3 slices of the node are held by subscriptions: cordon it, and reset it when they have gone.',
      ]);
      await fixture.settle();
    }
    expect((await fixture.node(pool.node_id)).status).toBe('ready');
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    expect((await command('reset', pool)).status).toBe('initialising');
  });

  it('takes the GPUs of the node out of service and brings them back as configured', async () => {
    const team = await fixture.team();
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    await command('reset', pool);
    expect((await errorOf(fixture.subscribe(team, { pool_id: pool.pool_id }))).code).toBe('insufficient_capacity');
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', transition: null, reason: null });
    expect((await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 4 })).vgpus_allocated).toBe(4);
  });

  it('that does not succeed is tried again as a reset, and after an initialise by hand as that', async () => {
    const node = await nodeThatIs('ready');
    await breakInit(node, 'fail', 1);
    await command('reset', node);
    await fixture.work();
    const isReset = async () =>
      (await fixture.query<{ is_reset: boolean }>('SELECT is_reset FROM node WHERE node_id = $1', [node.node_id]))[0]?.is_reset;
    expect([(await fixture.node(node.node_id)).status, await isReset()]).toEqual(['init_failed', true]);
    await command('initialise', node);
    expect(await isReset()).toBe(false);
    await fixture.settle();
    expect((await fixture.node(node.node_id)).status).toBe('ready');
  });

  it('and a subscription that comes at the same time: one of them is refused', async () => {
    const team = await fixture.team();
    for (let round = 0; round < 5; round += 1) {
      const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 });
      const [reset, subscribe] = await Promise.allSettled([command('reset', pool), fixture.subscribe(team, { pool_id: pool.pool_id })]);
      expect([reset.status, subscribe.status].toSorted()).toEqual(['fulfilled', 'rejected']);
      await fixture.settle();
    }
  });
});
