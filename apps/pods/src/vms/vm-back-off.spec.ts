import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { vms } from '@atoll/contracts/pods';
import { PodsFixture } from '../pods-fixture.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterAll(() => fixture.stop());

it('a VM that waits for its back-off waits no longer when it is restarted', async () => {
  const team = await fixture.team();
  const { instance_id } = await fixture.untilVm(await fixture.createVm(team), ({ status }) => status === 'running');
  const restart = () => fixture.call(vms.restart, { instance_id }, team.member);
  await restart();
  await fixture.query(`UPDATE vm SET failures = 8, next_run_at = now() + interval '5 min' WHERE instance_id = $1`, [
    instance_id,
  ]);
  await restart();
  const rows = await fixture.query('SELECT failures, next_run_at FROM vm WHERE instance_id = $1', [instance_id]);
  expect(rows).toEqual([{ failures: 0, next_run_at: null }]);
});
