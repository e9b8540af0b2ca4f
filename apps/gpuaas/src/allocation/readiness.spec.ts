import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { nodes, type Pool, type Subscription } from '@atoll/contracts/gpuaas';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { waitsForOutage } from './readiness.js';

const retried =
  'Waiting for a GPU that is out of service; its node is initialised again. The device could not be switched.';

describe('a subscription whose GPU could not be prepared', () => {
  let fixture: GpuaasFixture;
  let team: ToldTeam;
  beforeAll(async () => {
    fixture = await GpuaasFixture.start();
    team = await fixture.team();
  });
  afterAll(() => fixture.stop());

  /** Subscribed to while the GPU is being prepared, which then fails; its node cannot be initialised again. */
  async function unprepared(): Promise<{ held: Subscription; pool: Pool & Inventory }> {
    const inventory = await fixture.inventory();
    const { node_name } = await fixture.node(inventory.node_id);
    await fixture.get(SimulatedFaults).inject(node_name, 'switch', 'fail', 100);
    await fixture.get(SimulatedFaults).inject(node_name, 'init', 'fail', 100);
    const pool = await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 2 });
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id });
    expect(held.reason).toBe('Waiting for a GPU to change its sharing mode.');
    await fixture.until(async () => (await fixture.node(pool.node_id)).status === 'init_failed', 20);
    return { held, pool };
  }

  it('says why while its node is initialised again, and when it fails of its deadline', async () => {
    const { held } = await unprepared();
    await fixture.during(3);
    expect(await fixture.subscription(team, held)).toMatchObject({ status: 'subscribing', reason: retried });
    await fixture.settle();
    expect(await fixture.subscription(team, held)).toMatchObject({
      status: 'failed',
      reason: `Deadline exceeded: ${retried}`,
    });
  });

  it('does not say that its node is initialised again where that is left to an operator', async () => {
    const { held, pool } = await unprepared();
    await fixture.call(nodes.cordon, { node_id: pool.node_id });
    await fixture.during(3);
    expect(await fixture.subscription(team, held)).toMatchObject({
      status: 'subscribing',
      reason: 'Waiting for a GPU that is out of service. The device could not be switched.',
    });
  });
});

describe('the reason of a request whose GPU is out of service', () => {
  const reasonOf = (code: string | null, message: string | null) =>
    waitsForOutage({ code, message, isRetried: true }).message;
  const plain = 'Waiting for a GPU that is out of service; its node is initialised again.';

  it('says of a deadline that it was the GPU’s', () => {
    expect(reasonOf('device_busy', 'Deadline exceeded: The device still holds memory.')).toBe(
      `${plain} The GPU timed out: The device still holds memory.`,
    );
  });

  it('says nothing of a former holder, nor where the GPU has no error', () => {
    expect(reasonOf('not_given_back', 'The node refused: vacate.')).toBe(plain);
    expect(reasonOf(null, null)).toBe(plain);
  });
});
