import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { exposedServices, sharedVolumes, vms } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { PodsFixture, type ToldTeam } from './pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterAll(() => fixture.stop());

/** As if no process of the service had been there for so long. */
async function away(seconds: number): Promise<void> {
  const back = `interval '${seconds} seconds'`;
  for (const table of ['pod', 'vm', 'exposure', 'shared_volume']) {
    await fixture.query(
      `UPDATE ${table} SET due_at = due_at - ${back}, parked_until = parked_until - ${back}, deadline_at = deadline_at - ${back}
       WHERE deadline_at IS NOT NULL`,
    );
  }
}
const statesOf = async (machine: string, id: string) => {
  const rows = await fixture.query<{ to_state: string }>(
    'SELECT to_state FROM machine_history WHERE machine = $1 AND instance = $2 ORDER BY id',
    [machine, id],
  );
  return rows.map(({ to_state }) => to_state);
};
const expose = (pod_name: string) =>
  fixture.call(
    exposedServices.expose,
    { pod_name, service_name: `s-${newId()}`, port: 80, protocol: 'HTTP' },
    team.member,
  );
const refuse = (operation: 'start' | 'door' | 'volume') =>
  fixture.simulated.world.faults.inject('gpuaas-1', operation, 'refuse', 1_000);
const mend = () => fixture.simulated.world.faults.mend('gpuaas-1');

it('a pod that was accepted before the service was away starts when it is back, and fails if the cluster does not start it then', async () => {
  const pod = await fixture.create(team);
  await away(601);
  expect((await fixture.until(pod, 'running')).reason).toBeNull();
  await refuse('start');
  const other = await fixture.create(team);
  await away(601);
  await fixture.until(other, 'pulling');
  while ((await fixture.pod(other)).status === 'pulling') {
    await away(1_801);
    await fixture.work();
  }
  expect((await fixture.until(other, 'failed')).reason).toMatch(/^Deadline exceeded: /);
  await mend();
});

it('so does a VM', async () => {
  const vm = await fixture.createVm(team);
  await away(1_801);
  expect((await fixture.untilVm(vm, ({ status }) => status === 'running')).reason).toBeNull();
  await refuse('start');
  const other = await fixture.createVm(team, { name: 'other' });
  for (const states = async () => (await statesOf('vm', other.instance_id)).includes('failing'); !(await states());) {
    await away(1_801);
    await fixture.work();
  }
  expect((await fixture.untilVm(other, ({ status }) => status === 'failed')).reason).toMatch(/^Deadline exceeded: /);
  await mend();
});

it('so does an exposed service, in each of its states', async () => {
  const { pod_name } = await fixture.running(team);
  const service = await expose(pod_name);
  await away(121);
  await fixture.untilExposed(service, ({ status }) => status === 'active');
  expect(await statesOf('exposure', service.service_id)).toEqual(['pending', 'provisioning', 'active']);
  await refuse('door');
  const other = await expose(pod_name);
  await away(121);
  await fixture.work();
  while ((await statesOf('exposure', other.service_id)).at(-1) === 'provisioning') {
    await away(121);
    await fixture.work();
  }
  await mend();
  const { error } = await fixture.untilExposed(other, ({ status }) => status === 'failed');
  expect(error?.message).toMatch(/^Deadline exceeded: /);
});

it('a shared volume is created and grown all the same, and stays as large as it was if the cluster does not grow it then', async () => {
  const volume = await fixture.createVolume(team, { size_in_gb: 10 });
  await away(601);
  expect((await fixture.untilVolume(volume, ({ status }) => status === 'active')).reason).toBeNull();
  const resize = (size_in_gb: number) =>
    fixture.call(sharedVolumes.resize, { volume_id: volume.volume_id, size_in_gb }, team.member);
  const grown = () => fixture.untilVolume(volume, ({ status }) => status === 'active');
  await resize(20);
  await away(124);
  expect(await grown()).toMatchObject({ size_in_gb: 20, reason: null });
  await refuse('volume');
  await resize(30);
  await away(124);
  await fixture.work();
  expect(await fixture.call(sharedVolumes.get, { volume_id: volume.volume_id })).toMatchObject({ status: 'resizing' });
  await away(61);
  expect(await grown()).toMatchObject({ size_in_gb: 20, reason: 'Deadline exceeded: The cluster has no space left.' });
  await mend();
});
