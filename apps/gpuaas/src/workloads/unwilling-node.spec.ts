import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { nodes, workloads, type Workload } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
beforeEach(async () => {
  team = await fixture.team();
});
afterAll(() => fixture.stop());

type Held = { subscription_id: string };

const mps = (replicas: number) => ({ mechanism: 'mps', replicas }) as const;
const list = async (more: object = {}) =>
  (await fixture.call(workloads.list, { team_id: team.team_id, ...more }, team.member)).data;
const statusOf = async ({ workload_id }: Workload) =>
  (await list({ include_ended: 'true', limit: 100 })).find((each) => each.workload_id === workload_id);
const start = (held: Held) => fixture.start(team, held);

async function active(pool_id: string, vgpus = 1): Promise<Held> {
  const held = await fixture.subscribe(team, { pool_id, vgpus });
  await fixture.settle();
  return held;
}

/** How many of the leases of a subscription are occupied, and how many there are. */
async function occupied({ subscription_id }: Held): Promise<[number, number]> {
  const [row] = await fixture.query<{ used: number; all: number }>(
    'SELECT count(workload_id)::int AS used, count(*)::int AS all FROM lease WHERE subscription_id = $1',
    [subscription_id],
  );
  return [row?.used ?? 0, row?.all ?? 0];
}

describe('a workload whose node does not do its part', () => {
  it('has failed when it could not be started, says why, and occupies nothing', async () => {
    const nodeName = `node-${newId()}`;
    const held = await active((await fixture.pool(mps(2), { nodeName })).pool_id);
    await fixture.get(SimulatedFaults).inject(nodeName, 'occupy', 'fail');
    const job = await start(held);
    await fixture.settle();
    expect(await statusOf(job)).toMatchObject({ status: 'failed', reason: 'The node failed: occupy.' });
    expect(await occupied(held)).toEqual([0, 1]);
    const next = await start(held);
    await fixture.settle();
    expect((await statusOf(next))?.status).toBe('running');
  });

  it('has failed, and occupies its slices still, while what was done of it is taken back; its subscription may be left meanwhile', async () => {
    const nodeName = `node-${newId()}`;
    const held = await active((await fixture.pool(mps(2), { nodeName })).pool_id);
    const faults = fixture.get(SimulatedFaults);
    await faults.inject(nodeName, 'occupy', 'fail');
    await faults.inject(nodeName, 'vacate', 'refuse', 1_000);
    const job = await start(held);
    await fixture.work();
    expect(await statusOf(job)).toMatchObject({ status: 'failed', reason: 'The node failed: occupy.' });
    expect([await list(), await occupied(held)]).toEqual([[], [1, 1]]);
    expect((await fixture.unsubscribe(team, held)).status).toBe('unsubscribing');
    await faults.mend(nodeName);
    await fixture.settle();
    expect(await fixture.subscription(team, held)).toMatchObject({ status: 'unsubscribed' });
  });

  it('is tried five times before it has failed', async () => {
    const nodeName = `node-${newId()}`;
    const held = await active((await fixture.pool(mps(2), { nodeName })).pool_id, 2);
    const faults = fixture.get(SimulatedFaults);
    await faults.inject(nodeName, 'occupy', 'refuse', 4);
    const one = await start(held);
    await fixture.settle();
    expect(await statusOf(one)).toMatchObject({ status: 'running', reason: null });
    await faults.inject(nodeName, 'occupy', 'refuse', 5);
    const two = await start(held);
    await fixture.settle();
    expect(await statusOf(two)).toMatchObject({ status: 'failed', reason: 'The node refused: occupy.' });
  });

  it('has failed where it could not be stopped; its GPU is out of service until its node was looked after', async () => {
    const nodeName = `node-${newId()}`;
    const pool = await fixture.pool(mps(2), { nodeName });
    const held = await active(pool.pool_id);
    const job = await start(held);
    await fixture.settle();
    await fixture.get(SimulatedFaults).inject(nodeName, 'vacate', 'fail');
    await fixture.stopWorkload(team, job);
    await fixture.settle();
    expect(await statusOf(job)).toMatchObject({ status: 'failed', reason: 'The node failed: vacate.' });
    await fixture.work();
    expect(await fixture.node(pool.node_id)).toMatchObject({
      status: 'init_failed',
      reason: expect.stringContaining('The node failed: vacate.'),
    });
    const next = await start(held);
    expect(next.status).toBe('pending');
    await fixture.call(nodes.initialise, { node_id: pool.node_id });
    await fixture.settle();
    expect((await statusOf(next))?.status).toBe('running');
  });
});
