import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { exposedServices, pods, vms } from '@atoll/contracts/pods';
import { PodsFixture, type ToldTeam } from './pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team();
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterAll(() => fixture.stop());

const under = (key: string) => ({ key, fingerprint: key });

it('an exposed service is shown again under its idempotency key after its pod is deleted', async () => {
  const { pod_id, pod_name } = await fixture.running(team);
  const asked = { pod_name, service_name: 'web', port: 80, protocol: 'HTTP' } as const;
  const expose = () => fixture.call(exposedServices.expose, asked, team.member, under('expose'));
  const exposed = await expose();
  await fixture.call(pods.delete, { pod_name }, team.member);
  await fixture.untilDeleted({ pod_id });
  expect(await expose()).toEqual(exposed);
});

it('what was done to a VM is shown again under its idempotency key after the VM is deleted', async () => {
  const { instance_id } = await fixture.createVm(team);
  const act = (action: 'start' | 'stop' | 'restart') =>
    fixture.call(vms[action], { instance_id }, team.member, under(action));
  const started = await act('start');
  await fixture.untilVm({ instance_id }, ({ status }) => status === 'running');
  const [restarted, stopped] = [await act('restart'), await act('stop')];
  await fixture.call(vms.delete, { instance_id }, team.member);
  await fixture.untilVmDeleted({ instance_id });
  expect([await act('start'), await act('restart'), await act('stop')]).toEqual([started, restarted, stopped]);
});
