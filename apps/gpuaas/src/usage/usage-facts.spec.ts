import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { type UsageTold } from '@atoll/contracts/billing';
import { nodes, subscriptions } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

type Held = { subscription_id: string };
type Fact = UsageTold['facts'][number];

/** A transition that changes what is billed. */
interface Transition {
  event: string;
  at: Date;
}

const billed = ['GRANTED', 'GROWN', 'SHRUNK', 'RELEASED'];

/** The facts of a subscription, once all that the service had to tell is told. */
async function factsOf({ subscription_id }: Held): Promise<Fact[]> {
  const untold = () => fixture.query('SELECT FROM outbox LIMIT 1');
  while ((await untold()).length > 0) await delay(10);
  return fixture.events
    .filter(({ name }) => name === 'gpuaas.usage_told')
    .flatMap(({ payload }) => (payload as UsageTold).facts)
    .filter(({ resource_id }) => resource_id === `gpuaas_pool:${subscription_id}`);
}

function transitionsOf({ subscription_id }: Held): Promise<Transition[]> {
  return fixture.query<Transition>(
    `SELECT event, at FROM machine_history WHERE machine = 'subscription' AND instance = $1 AND event = ANY ($2) ORDER BY id`,
    [subscription_id, billed],
  );
}

const quantities = (facts: readonly Fact[]) => facts.map(({ quantity }) => quantity);

describe('what billing is told', () => {
  const resize = ({ subscription_id }: Held, vgpus: number) =>
    fixture.call(subscriptions.resize, { subscription_id, vgpus }, team.member);

  async function active(terms: object = {}, vgpus = 1): Promise<Held> {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 12, ...terms });
    const held = await fixture.subscribe(team, { pool_id, vgpus });
    await fixture.settle();
    return held;
  }

  it('is what is held, by whom, where and of which SKU, from the instant it is active', async () => {
    const pool = await fixture.pool({ profiles: ['1g.10gb', '3g.40gb'] });
    const held = await fixture.subscribe(team, {
      pool_id: pool.pool_id,
      profile: '3g.40gb',
      vgpus: 2,
      name: 'training',
    });
    expect(await factsOf(held)).toEqual([]);
    await fixture.settle();
    const [granted] = await transitionsOf(held);
    const [row] = await fixture.query<{ active_since: Date }>(
      'SELECT active_since FROM subscription WHERE subscription_id = $1',
      [held.subscription_id],
    );
    expect(row?.active_since).toEqual(granted?.at);
    expect(await factsOf(held)).toEqual([
      {
        id: expect.any(String),
        time: granted?.at.toISOString(),
        sequence: expect.any(Number),
        resource_id: `gpuaas_pool:${held.subscription_id}`,
        resource_name: 'training',
        kind: 'gpuaas_pool',
        sku: 'gpu.A100-80GB.3g.40gb',
        quantity: '2',
        team_id: team.team_id,
        workspace_id: team.workspace_id,
        region_id: pool.region_id,
        pool_id: pool.pool_id,
        attributes: { pool_name: pool.pool_name, pool_profiles: 2, profile: '3g.40gb', v_ram_gb: 40 },
      },
    ]);
    expect((await fixture.subscription(team, held)).v_ram_gb).toBe(40);
  });

  it('is one fact for each change of what is held, at the millisecond of that change, ending with 0', async () => {
    const held = await active({}, 3);
    for (const vgpus of [7, 2, 2, 12]) {
      await resize(held, vgpus);
      await fixture.settle();
    }
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    const told = await factsOf(held);
    expect(quantities(told)).toEqual(['3', '7', '2', '12', '0']);
    expect(told.map(({ time }) => time)).toEqual((await transitionsOf(held)).map(({ at }) => at.toISOString()));
    expect(new Set(told.map(({ id }) => id)).size).toBe(5);
    const sequences = told.map(({ sequence = 0 }) => sequence);
    expect(sequences).toEqual([...new Set(sequences)].toSorted((one, other) => one - other));
  });

  it('goes on while it is being given back, until it is', async () => {
    const nodeName = `node-${newId()}`;
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 4 }, { nodeName });
    const held = await fixture.subscribe(team, { pool_id });
    await fixture.settle();
    await fixture.get(SimulatedFaults).inject(nodeName, 'vacate', 'refuse', 1_000);
    await fixture.unsubscribe(team, held);
    await fixture.work();
    expect(quantities(await factsOf(held))).toEqual(['1']);
    await fixture.get(SimulatedFaults).mend(nodeName);
    await fixture.settle();
    expect(quantities(await factsOf(held))).toEqual(['1', '0']);
  });

  it('is nothing of a subscription that never was active: refused by its node, or left before', async () => {
    const nodeName = `node-${newId()}`;
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 4 }, { nodeName });
    await fixture.get(SimulatedFaults).inject(nodeName, 'confirm', 'fail');
    const failed = await fixture.subscribe(team, { pool_id });
    await fixture.settle();
    const left = await fixture.subscribe(team, { pool_id });
    await fixture.unsubscribe(team, left);
    await fixture.settle();
    expect((await fixture.subscription(team, failed)).status).toBe('failed');
    expect((await fixture.subscription(team, left)).status).toBe('unsubscribed');
    expect([await factsOf(failed), await factsOf(left)]).toEqual([[], []]);
  });

  it('ends also where what was held was not given back: a failed subscription costs nothing', async () => {
    const nodeName = `node-${newId()}`;
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 4 }, { nodeName });
    const held = await fixture.subscribe(team, { pool_id, vgpus: 2 });
    await fixture.settle();
    await fixture.get(SimulatedFaults).inject(nodeName, 'vacate', 'fail');
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    const [ended] = await fixture.query<{ state: string; entered_at: Date }>(
      'SELECT state, entered_at FROM subscription WHERE subscription_id = $1',
      [held.subscription_id],
    );
    const told = await factsOf(held);
    expect([ended?.state, quantities(told), told.at(-1)?.time]).toEqual([
      'failed',
      ['2', '0'],
      ended?.entered_at.toISOString(),
    ]);
  });

  it('is what is held, used or not, with overcommit too; what runs tells nothing', async () => {
    const held = await active({ overcommit: 3 }, 20);
    const job = await fixture.start(team, held, 4);
    await fixture.settle();
    await fixture.stopWorkload(team, job);
    await fixture.settle();
    expect(quantities(await factsOf(held))).toEqual(['20']);
  });

  it('does not change with the mode of a GPU, nor with what becomes of its node', async () => {
    const pool = await fixture.pool({ profiles: ['7g.80gb'], allow_fallback: true, temporal_replicas: 4 });
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 2 });
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Temporal' });
    await fixture.call(nodes.cordon, { node_id: pool.node_id });
    await fixture.settle();
    expect(quantities(await factsOf(held))).toEqual(['2']);
  });

  it('is told once for what is asked many times', async () => {
    const held = await active({}, 2);
    await Promise.all(Array.from({ length: 6 }, () => fixture.unsubscribe(team, held)));
    await fixture.settle();
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    expect(quantities(await factsOf(held))).toEqual(['2', '0']);
  });

  it('is not told of a change that was refused', async () => {
    const held = await active({}, 2);
    await resize(held, 13).catch(() => undefined);
    expect(quantities(await factsOf(held))).toEqual(['2']);
  });

  it('law: of many that change at once, by two workers, is for each one fact a transition, whose quantities are what was held', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 48 }, { count: 2 });
    const held = await Promise.all(Array.from({ length: 12 }, () => fixture.subscribe(team, { pool_id })));
    await Promise.all([fixture.work(), fixture.work()]);
    for (const more of [4, 1, 3]) {
      await Promise.allSettled(
        held.flatMap((each, at) => [resize(each, more + (at % 2)), resize(each, more + (at % 2))]),
      );
      await Promise.all([fixture.work(), fixture.work()]);
    }
    await Promise.all([...held.map((each) => fixture.unsubscribe(team, each)), fixture.work(), fixture.work()]);
    await fixture.settle();
    for (const each of held) {
      const told = (await factsOf(each)).toSorted((one, other) => (one.sequence ?? 0) - (other.sequence ?? 0));
      const transitions = await transitionsOf(each);
      expect(told.map(({ time }) => time)).toEqual(transitions.map(({ at }) => at.toISOString()));
      expect(transitions.map(({ event }) => event)).toEqual(['GRANTED', 'GROWN', 'SHRUNK', 'GROWN', 'RELEASED']);
      const sizes = [4, 1, 3].map((vgpus) => String(vgpus + (held.indexOf(each) % 2)));
      expect(quantities(told)).toEqual(['1', ...sizes, '0']);
    }
  });
});
