import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { subscriptions } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

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

const leases = ({ subscription_id }: Held) =>
  fixture.query('SELECT FROM lease WHERE subscription_id = $1', [subscription_id]);
const statusOf = async (held: Held) => (await fixture.subscription(team, held)).status;

async function active(pool_id: string, vgpus: number): Promise<Held> {
  const held = await fixture.subscribe(team, { pool_id, vgpus });
  await fixture.settle();
  expect(await statusOf(held)).toBe('active');
  return held;
}

/** What of a pool can still be subscribed to, of its smallest profile. */
async function left(poolId: string): Promise<number> {
  const message = (await errorOf(fixture.subscribe(team, { pool_id: poolId, vgpus: 1_000 }))).message;
  return Number(/Available: (\d+)/.exec(message)?.[1] ?? 0);
}

describe('a subscription that its node does not grant', () => {
  it('has failed once it was tried often enough, says why, and has given everything back', async () => {
    const nodeName = `node-${newId()}`;
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] }, { nodeName });
    await fixture.get(SimulatedFaults).inject(nodeName, 'confirm', 'refuse', 100);
    const held = await fixture.subscribe(team, { pool_id, vgpus: 2 });
    await fixture.settle();
    expect(await fixture.subscription(team, held)).toMatchObject({
      status: 'failed',
      reason: 'The node refused: confirm.',
      vgpus_allocated: 0,
    });
    expect([(await leases(held)).length, await left(pool_id)]).toEqual([0, 7]);
    expect(await fixture.unsubscribe(team, held)).toMatchObject({ status: 'failed' });
  });

  it('has failed, with its reason, while what was done of it is taken back; its slices are nobody else’s until then', async () => {
    const nodeName = `node-${newId()}`;
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] }, { nodeName });
    const faults = fixture.get(SimulatedFaults);
    await faults.inject(nodeName, 'confirm', 'fail');
    await faults.inject(nodeName, 'vacate', 'refuse', 1_000);
    const held = await fixture.subscribe(team, { pool_id, vgpus: 3 });
    await fixture.work();
    const failed = { status: 'failed', reason: 'The node failed: confirm.', vgpus_allocated: 0 };
    expect(await fixture.subscription(team, held)).toMatchObject(failed);
    expect(await fixture.call(subscriptions.list, { team_id: team.team_id }, team.member)).toEqual({ data: [] });
    expect([(await fixture.unsubscribe(team, held)).status, await left(pool_id)]).toEqual(['failed', 4]);
    await faults.mend(nodeName);
    await fixture.settle();
    expect(await fixture.subscription(team, held)).toMatchObject(failed);
    expect(await left(pool_id)).toBe(7);
  });

  it('is granted when the node does so at last, within its tries', async () => {
    const nodeName = `node-${newId()}`;
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] }, { nodeName });
    await fixture.get(SimulatedFaults).inject(nodeName, 'confirm', 'refuse', 4);
    const held = await active(pool_id, 1);
    expect(await fixture.subscription(team, held)).toMatchObject({ status: 'active', reason: null });
  });

  it('says while it waits what it waits for', async () => {
    const nodeName = `node-${newId()}`;
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] }, { nodeName });
    await fixture.get(SimulatedFaults).inject(nodeName, 'confirm', 'refuse', 4);
    const held = await fixture.subscribe(team, { pool_id });
    await fixture.work();
    expect(await fixture.subscription(team, held)).toMatchObject({
      status: 'subscribing',
      reason: 'The node refused: confirm.',
    });
    await fixture.settle();
    expect(await fixture.subscription(team, held)).toMatchObject({ status: 'active', reason: null });
  });
});

describe('a subscription that its node does not give back', () => {
  it('ends as failed and is no longer held; its GPUs are looked after before anybody else comes there', async () => {
    const nodeName = `node-${newId()}`;
    const pool = await fixture.pool({ profiles: ['1g.10gb'] }, { nodeName });
    const held = await active(pool.pool_id, 2);
    await fixture.get(SimulatedFaults).inject(nodeName, 'vacate', 'fail', 1);
    await fixture.unsubscribe(team, held);
    await fixture.work();
    expect(await fixture.subscription(team, held)).toMatchObject({
      status: 'failed',
      reason: 'The node failed: vacate.',
      vgpus_allocated: 0,
    });
    expect(await leases(held)).toHaveLength(0);
    const history = await fixture.query<{ to_state: string }>(
      `SELECT to_state FROM machine_history WHERE machine = 'gpu' AND instance = $1 ORDER BY id DESC LIMIT 1`,
      [pool.gpu_ids[0]],
    );
    expect(history).toEqual([{ to_state: 'offline' }]);
    expect((await errorOf(fixture.subscribe(team, { pool_id: pool.pool_id }))).code).toBe('insufficient_capacity');
    await fixture.settle();
    expect((await fixture.node(pool.node_id)).status).toBe('init_failed');
    await fixture.pass(60);
    await fixture.settle();
    expect((await fixture.subscribe(team, { pool_id: pool.pool_id })).status).toBe('subscribing');
  });
});
