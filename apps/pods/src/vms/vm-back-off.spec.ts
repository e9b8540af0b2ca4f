import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { vms } from '@atoll/contracts/pods';
import { PodsFixture } from '../pods-fixture.js';
import { VmSteps } from './vm-steps.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterAll(() => fixture.stop());

it('a VM that waits for its back-off waits no longer when it is restarted', async () => {
  const team = await fixture.team();
  const { instance_id } = await fixture.runningVm(team);
  const restart = () => fixture.call(vms.restart, { instance_id }, team.member);
  await restart();
  await fixture.query(`UPDATE vm SET failures = 8, next_run_at = now() + interval '5 min' WHERE instance_id = $1`, [
    instance_id,
  ]);
  await restart();
  const rows = await fixture.query('SELECT failures, next_run_at FROM vm WHERE instance_id = $1', [instance_id]);
  expect(rows).toEqual([{ failures: 0, next_run_at: null }]);
});

it('a VM starts again where auto_restart is switched on while its step still finds it off', async () => {
  const team = await fixture.team();
  const { instance_id } = await fixture.runningVm(team);
  await fixture.query(
    `UPDATE vm SET state = 'restarting', auto_restart = false, next_run_at = now(), end_reason = 'Its guest crashed.',
       due_at = clock_timestamp(), parked_until = NULL, deadline_at = now() + interval '1 hour' WHERE instance_id = $1`,
    [instance_id],
  );
  const steps = fixture.get(VmSteps);
  const step = steps.step.bind(steps);
  let isSwitchedOn = false;
  const watched = jest.spyOn(steps, 'step').mockImplementation(async (vm, context) => {
    const found = await step(vm, context);
    if (isSwitchedOn || vm.instanceId !== instance_id || !('decide' in Object(found))) return found;
    isSwitchedOn = true;
    await fixture.call(vms.update, { instance_id, auto_restart: true }, team.member);
    return found;
  });
  const vm = await fixture.untilVm({ instance_id }, ({ status }) => status === 'running');
  watched.mockRestore();
  expect(vm).toMatchObject({ restarts: 1, auto_restart: true });
  expect(isSwitchedOn).toBe(true);
});
