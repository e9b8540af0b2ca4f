import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { vms, type Vm } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team();
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterAll(() => fixture.stop());

const act = ({ instance_id }: Vm, action: 'start' | 'stop' | 'restart' | 'delete') =>
  fixture.call(vms[action], { instance_id }, team.member);
/** The image of its next run can be pulled. */
const mend = ({ instance_id }: Vm) => fixture.call(vms.update, { instance_id, name: `vm-${newId()}` }, team.member);

async function runsOf({ instance_id }: Vm): Promise<number[]> {
  const runs: number[] = [];
  const driver = await fixture.simulated.driverOf('1');
  for await (const { ref } of driver.list(AbortSignal.timeout(10_000))) if (ref.id === instance_id) runs.push(ref.run);
  return runs;
}

/** Works until the cluster has this run of the VM. */
async function untilRequested(vm: Vm, run: number): Promise<void> {
  while (!(await runsOf(vm)).includes(run)) {
    await fixture.work();
    await fixture.hurry();
  }
}

/** A VM that starts for ever, and was restarted twice meanwhile. */
async function restartedWhileStarting(): Promise<Vm> {
  const vm = await fixture.createVm(team, { name: `pull-hang-${newId()}` });
  await untilRequested(vm, 1);
  for (const run of [2, 3]) {
    await act(vm, 'restart');
    await untilRequested(vm, run);
  }
  return vm;
}

it('of a VM that was restarted while it was starting, only the present run is left once it runs', async () => {
  const vm = await restartedWhileStarting();
  await mend(vm);
  await act(vm, 'restart');
  await fixture.untilVm(vm, ({ status }) => status === 'running');
  expect(await runsOf(vm)).toEqual([4]);
});

it('of a VM that was restarted while it was starting, and stopped, only the present run is left once it runs', async () => {
  const vm = await restartedWhileStarting();
  await act(vm, 'stop');
  await fixture.untilVm(vm, ({ status }) => status === 'stopped');
  await mend(vm);
  await act(vm, 'start');
  await fixture.untilVm(vm, ({ status }) => status === 'running');
  expect(await runsOf(vm)).toEqual([4]);
});

it('of a VM that was restarted while it was starting, no run is left once it is deleted', async () => {
  const vm = await restartedWhileStarting();
  await act(vm, 'delete');
  await fixture.untilVmDeleted(vm);
  expect(await runsOf(vm)).toEqual([]);
});
