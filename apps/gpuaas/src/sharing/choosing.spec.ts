import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { GpuNode } from '@atoll/contracts/gpuaas';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';
import { NodesUnderTest } from '../nodes/node-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let under: NodesUnderTest;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  under = await NodesUnderTest.of(fixture);
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const mps = { mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 8 } as const;

const failToSwitch = (node: GpuNode | undefined, times = 1) =>
  fixture.get(SimulatedFaults).inject(node?.node_name ?? '', 'switch', 'fail', times);

async function subscribed(pool_id: string, vgpus: number): Promise<string> {
  const held = await fixture.subscribe(team, { pool_id, vgpus });
  await fixture.settle();
  return (await fixture.subscription(team, held)).status;
}
const gpusOf = (all: readonly GpuNode[]) => Promise.all(all.map((node) => fixture.gpu(node)));

describe('a GPU that cannot fall back', () => {
  it('is asked after all others, and says why and when it stayed', async () => {
    const { pool, nodes } = await under.poolOver(3, mps);
    expect(await subscribed(pool.pool_id, 6)).toBe('active');
    await failToSwitch(nodes[0], 1_000);
    const statuses: string[] = [];
    for (let at = 0; at < 5; at += 1) statuses.push(await subscribed(pool.pool_id, 1));
    expect(statuses).toEqual(['failed', 'active', 'active', 'active', 'active']);
    const reason = expect.stringMatching(
      /^The device could not be switched\. It failed to fall back at \S+Z; other GPUs are preferred since\.$/,
    );
    expect(await gpusOf(nodes)).toMatchObject([
      { mode: 'Spatial', transition: null, reason },
      { mode: 'Temporal', reason: null },
      { mode: 'Spatial', reason: null },
    ]);
  });

  it('is asked all the same where the others do not suffice', async () => {
    const { pool, nodes } = await under.poolOver(2, mps);
    expect(await subscribed(pool.pool_id, 4)).toBe('active');
    await failToSwitch(nodes[0]);
    expect(await subscribed(pool.pool_id, 1)).toBe('failed');
    expect(await subscribed(pool.pool_id, 12)).toBe('active');
    expect(await gpusOf(nodes)).toMatchObject([{ mode: 'Temporal', reason: null }, { mode: 'Temporal' }]);
  });

  it('keeps none from falling back that could not either, and can by now', async () => {
    const { pool, nodes } = await under.poolOver(2, mps);
    expect(await subscribed(pool.pool_id, 4)).toBe('active');
    await failToSwitch(nodes[0], 1_000);
    await failToSwitch(nodes[1]);
    const statuses: string[] = [];
    for (let at = 0; at < 4; at += 1) statuses.push(await subscribed(pool.pool_id, 1));
    expect(statuses).toEqual(['failed', 'failed', 'failed', 'active']);
    expect(await gpusOf(nodes)).toMatchObject([{ mode: 'Spatial' }, { mode: 'Temporal' }]);
  });

  it('fails no further request, however long ago it failed, as long as the others suffice', async () => {
    const { pool, nodes } = await under.poolOver(2, mps);
    expect(await subscribed(pool.pool_id, 4)).toBe('active');
    await failToSwitch(nodes[0], 1_000);
    expect(await subscribed(pool.pool_id, 1)).toBe('failed');
    await fixture.query(`UPDATE gpu SET entered_at = entered_at - interval '1 day' WHERE pool_id = $1`, [pool.pool_id]);
    expect(await subscribed(pool.pool_id, 1)).toBe('active');
    expect(await gpusOf(nodes)).toMatchObject([{ mode: 'Spatial' }, { mode: 'Temporal' }]);
  });
});

it('a turn that is free now is taken before a slice of a GPU that is being prepared', async () => {
  const { pool, nodes } = await under.poolOver(2, mps);
  const [fallen, prepared] = nodes as [GpuNode, GpuNode];
  await under.command('cordon', prepared);
  expect(await subscribed(pool.pool_id, 3)).toBe('active');
  await fixture.get(SimulatedFaults).inject(prepared.node_name, 'switch', 'hang', 1_000);
  await under.command('reset', prepared);
  await fixture.work();
  await under.command('uncordon', prepared);
  expect(await gpusOf([fallen, prepared])).toMatchObject([{ mode: 'Temporal' }, { transition: 'preparing' }]);
  const held = await fixture.subscribe(team, { pool_id: pool.pool_id });
  await fixture.work();
  expect(await fixture.subscription(team, held)).toMatchObject({ status: 'active', reason: null });
});

it('a GPU without tenants falls back before one whose tenants would lose their isolation', async () => {
  const { pool, nodes } = await under.poolOver(2, mps);
  expect(await subscribed(pool.pool_id, 2)).toBe('active');
  expect(await subscribed(pool.pool_id, 3)).toBe('active');
  expect(await gpusOf(nodes)).toMatchObject([{ mode: 'Spatial' }, { mode: 'Temporal' }]);
});
