import { exposedServices, vms } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { MachineWorkers, type MachineDefinition } from '@atoll/state-machine';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { exposureMachine } from './model/exposure.machine.js';
import { podMachine } from './model/pod.machine.js';
import { vmMachine } from './model/vm.machine.js';
import { volumeMachine } from './model/volume.machine.js';
import { PodsFixture, type ToldTeam } from './pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterEach(async () => {
  jest.restoreAllMocks();
  await leaveAlone();
});
afterAll(() => fixture.stop());

/** More steps than a row needs to come to rest from whatever state. */
const manySteps = 30;

/** Of each table: its machine, and the key of a new row that is at rest. */
const machines: Record<string, { definition: MachineDefinition; make: () => Promise<string> }> = {
  pod: {
    definition: podMachine.definition,
    make: async () => (await fixture.running(team, { max_duration_minutes: 60 })).pod_id,
  },
  vm: {
    definition: vmMachine.definition,
    make: async () => {
      return (await fixture.runningVm(team)).instance_id;
    },
  },
  shared_volume: { definition: volumeMachine.definition, make: async () => (await fixture.volume(team)).volume_id },
  exposure: {
    definition: exposureMachine.definition,
    make: async () => {
      const { pod_name } = await fixture.running(team);
      const asked = { pod_name, service_name: `s-${newId()}`, port: 80, protocol: 'HTTP' } as const;
      const service = await fixture.call(exposedServices.expose, asked, team.member);
      return (await fixture.untilExposed(service, ({ status }) => status === 'active')).service_id;
    },
  },
};

/** No row is due any more, now or later. */
async function leaveAlone(): Promise<void> {
  for (const table of Object.keys(machines))
    await fixture.query(`UPDATE ${table} SET due_at = NULL, parked_until = NULL, deadline_at = NULL`);
}

/** A new row in this state, due now, as the only one; the time of a pod is over. */
async function madeDue(table: string, state: string, deadline: string | null): Promise<string> {
  const key = await machines[table]!.make();
  await leaveAlone();
  await fixture.query(
    `UPDATE ${table} SET state = $2, due_at = clock_timestamp(), deadline_at = clock_timestamp() + $3::interval
       ${table === 'pod' ? `, stops_at = clock_timestamp() - interval '1 minute'` : ''}
     WHERE ${keyOf(table)}::text = $1`,
    [key, state, deadline],
  );
  return key;
}

/** Steps until nothing is due in this table, at most `manySteps`. */
async function stepsOf(table: string): Promise<number> {
  const worker = fixture.get(MachineWorkers).workers[machineAt(table)]!;
  let steps = 0;
  while (steps < manySteps && (await worker.doNext())) steps += 1;
  return steps;
}

const machineAt = (table: string) =>
  fixture.get(MachineWorkers).machines.findIndex((machine) => machine.table === table);
const keyOf = (table: string) => fixture.get(MachineWorkers).machines[machineAt(table)]!.key;

const states = Object.entries(machines).flatMap(([table, { definition }]) =>
  [...definition.states].map(([state, { rule, isReviewed }]) => ({ table, state, rule, isReviewed })),
);
const stable = states.filter(({ rule, isReviewed }) => !rule && !isReviewed);
const others = states.filter(({ rule, isReviewed }) => rule ?? isReviewed);

describe('a row that is made due', () => {
  it.each(stable)(
    'is left at rest by one step, though no cluster answers, in $table $state',
    async ({ table, state }) => {
      const key = await madeDue(table, state, null);
      jest.spyOn(fixture.simulated, 'driverOf').mockRejectedValue(new Error('The cluster is gone.'));
      expect(await stepsOf(table)).toBe(1);
      const [row] = await fixture.query(
        `SELECT state, due_at, attempts FROM ${table} WHERE ${keyOf(table)}::text = $1`,
        [key],
      );
      expect(row).toEqual({ state, due_at: null, attempts: 0 });
    },
  );

  it.each(
    others.flatMap((each) => (each.rule ? ['1 hour', '-1 second'] : [null]).map((deadline) => ({ ...each, deadline }))),
  )('comes to rest from $table $state, with a deadline in $deadline', async ({ table, state, deadline }) => {
    await madeDue(table, state, deadline);
    expect(await stepsOf(table)).toBeLessThan(manySteps);
  });
});
