import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { exposedServices, podBatches, pods, sharedVolumes, vms } from '@atoll/contracts/pods';
import { codeWhenSuspendedMeanwhile } from '@atoll/testing';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 8);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 1, memory_gb: 1 });
});
afterAll(() => fixture.stop());

/** What a call is told that was let in before the suspension of its team was known here, and gives after it. */
const toldAfter = (call: () => Promise<unknown>) => codeWhenSuspendedMeanwhile(fixture, team.team_id, call);

it('nothing is given to a team whose suspension is heard of while the call waits', async () => {
  const { member } = team;
  const pod_name = (await fixture.running(team)).pod_name;
  const { volume_id } = await fixture.volume(team);
  const { service_id } = await fixture.call(
    exposedServices.expose,
    { pod_name, service_name: 'web', port: 80, protocol: 'HTTP' },
    member,
  );
  await fixture.untilExposed({ service_id }, ({ status }) => status === 'active');
  const { instance_id } = await fixture.runningVm(team);
  const calls: Record<string, () => Promise<unknown>> = {
    'a pod': () => fixture.create(team),
    'another name of a pod': () => fixture.call(pods.update, { pod_name, name: 'other' }, member),
    'the restart of a pod': () => fixture.act({ pod_name }, 'restart', team),
    'a mounted volume': () =>
      fixture.call(podBatches.mount, { pod_name, attach: [{ volume_id, path: '/data' }] }, member),
    'a volume': () => fixture.createVolume(team, { name: 'more' }),
    'a larger volume': () => fixture.call(sharedVolumes.resize, { volume_id, size_in_gb: 99 }, member),
    'a VM': () => fixture.createVm(team, { name: 'more' }),
    'another name of a VM': () => fixture.call(vms.update, { instance_id, name: 'other' }, member),
    'the restart of a VM': () => fixture.call(vms.restart, { instance_id }, member),
    'an exposed service': () =>
      fixture.call(exposedServices.expose, { pod_name, service_name: 'more', port: 81, protocol: 'HTTP' }, member),
    'another port of a service': () => fixture.call(exposedServices.update, { service_id, port: 82 }, member),
  };
  for (const [what, call] of Object.entries(calls))
    expect([what, await toldAfter(call)]).toEqual([what, 'team_suspended']);
  await fixture.call(sharedVolumes.resize, { volume_id, size_in_gb: 99 }, member);
});
