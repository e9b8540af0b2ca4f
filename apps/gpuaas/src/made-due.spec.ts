import { MachineWorkers, type DurableMachine, type MachineDefinition, type MachineRow } from '@atoll/state-machine';
import { allowErrors } from '@atoll/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { BaremetalFixture } from './baremetal/baremetal-fixture.js';
import { BaremetalWorkers } from './baremetal/baremetal-providers.js';
import { HostAccess } from './baremetal/hosts/host-access.js';
import { NodeDriver } from './driver/node-driver.js';
import { baremetalInstanceMachine } from './model/baremetal-instance.machine.js';
import { baremetalNodeMachine } from './model/baremetal-node.machine.js';
import { gpuMachine } from './model/gpu.machine.js';
import { nodeMachine } from './model/node.machine.js';
import { subscriptionMachine } from './model/subscription.machine.js';
import { workloadMachine } from './model/workload.machine.js';
import type { GpuaasFixture } from './gpuaas-fixture.js';

let metal: BaremetalFixture;
let fixture: GpuaasFixture;
/** Of each table: the key of a row. */
let keys: Record<string, string>;
beforeAll(async () => {
  metal = await BaremetalFixture.start();
  fixture = metal.gpuaas;
  const team = await fixture.team();
  const { pool_id, node_id } = await fixture.pool();
  const { gpu_ids } = await fixture.pool();
  const { subscription_id } = await fixture.subscribe(team, { pool_id, profile: '1g.10gb' });
  await fixture.settle();
  const { workload_id } = await fixture.start(team, { subscription_id });
  await fixture.settle();
  const host = await metal.available();
  const { instance_id } = await metal.settled(team);
  keys = {
    node: node_id,
    gpu: gpu_ids[0] ?? '',
    subscription: subscription_id,
    workload: workload_id,
    baremetal_node: host.node_id,
    baremetal_instance: instance_id,
  };
});
afterEach(async () => {
  jest.restoreAllMocks();
  await leaveAlone();
});
afterAll(() => metal.stop());

/** More steps than a row needs to come to rest from whatever state. */
const manySteps = 30;
const limits = { requestMs: 3_600_000, provisionMs: 60_000, retries: 1, backOffMs: 1_000 };
const definitions: Record<string, MachineDefinition> = {
  node: nodeMachine.definition,
  gpu: gpuMachine.definition,
  subscription: subscriptionMachine.definition,
  workload: workloadMachine.definition,
  baremetal_node: baremetalNodeMachine.definition,
  baremetal_instance: baremetalInstanceMachine(limits).definition,
};
/** Stable states that rows leave by themselves: their steps run by time. */
const tried = new Set(['node init_failed', 'gpu temporal']);

/** No row is due any more, now or later. */
async function leaveAlone(): Promise<void> {
  for (const table of Object.keys(definitions))
    await fixture.query(`UPDATE ${table} SET due_at = NULL, parked_until = NULL, deadline_at = NULL`);
}

/** The row of a table, in this state and due now, as the only one. */
async function madeDue(table: string, state: string, deadline: string | null): Promise<void> {
  await leaveAlone();
  await fixture.query(
    `UPDATE ${table} SET state = $2, due_at = clock_timestamp(), deadline_at = clock_timestamp() + $3::interval
     WHERE ${machineOf(table).key}::text = $1`,
    [keys[table], state, deadline],
  );
}

const all = () => [fixture.get(MachineWorkers), fixture.get(BaremetalWorkers)];
const machineOf = (table: string): DurableMachine<MachineRow> =>
  all()
    .flatMap(({ machines }) => machines)
    .find((machine) => machine.table === table)!;

/** Steps until nothing is due in this table, at most `manySteps`. */
async function stepsOf(table: string): Promise<number> {
  const found = all().find(({ machines }) => machines.includes(machineOf(table)))!;
  const worker = found.workers[found.machines.indexOf(machineOf(table))]!;
  let steps = 0;
  while (steps < manySteps && (await worker.doNext())) steps += 1;
  return steps;
}

const states = Object.entries(definitions).flatMap(([table, definition]) =>
  [...definition.states].map(([state, { rule, isReviewed }]) => ({ table, state, rule, isReviewed })),
);
const stable = states.filter(
  ({ table, state, rule, isReviewed }) => !rule && !isReviewed && !tried.has(`${table} ${state}`),
);

describe('a row that is made due', () => {
  it.each(stable)('is left at rest by one step, though no node answers, in $table $state', async ({ table, state }) => {
    await madeDue(table, state, null);
    jest.spyOn(fixture.get(NodeDriver), 'observe').mockRejectedValue(new Error('The node is gone.'));
    jest.spyOn(fixture.get(HostAccess), 'driverOf').mockImplementation(() => {
      throw new Error('The host is gone.');
    });
    expect(await stepsOf(table)).toBe(1);
    const row = `SELECT state, due_at, attempts FROM ${table} WHERE ${machineOf(table).key}::text = $1`;
    expect(await fixture.query(row, [keys[table]])).toEqual([{ state, due_at: null, attempts: 0 }]);
  });

  it.each(
    states
      .filter((each) => !stable.includes(each))
      .flatMap((each) => (each.rule ? ['1 hour', '-1 second'] : [null]).map((deadline) => ({ ...each, deadline }))),
  )('comes to rest from $table $state, with a deadline in $deadline', async ({ table, state, deadline }) => {
    // What belongs to the state, such as a node, is not there: a step may fail, and is tried again later.
    allowErrors(/^(A step of|Cannot apply the result of a step of)/);
    await madeDue(table, state, deadline);
    expect(await stepsOf(table)).toBeLessThan(manySteps);
  });
});
