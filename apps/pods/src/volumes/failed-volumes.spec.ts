import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { vms, type SharedVolume, type Vm } from '@atoll/contracts/pods';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { VolumeWatch } from './volume-watch.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterAll(() => fixture.stop());

const mountOf = ({ volume_id }: SharedVolume) => ({ volumes: [{ volume_id, path: '/data' }] });
const refusalOf = ({ volume_id, name }: SharedVolume) => `The volume ${volume_id} (${name}) is failed.`;
const actOnVm = ({ instance_id }: Vm, action: 'start' | 'stop' | 'restart') =>
  fixture.call(vms[action], { instance_id }, team.member);

const takeAway = ({ volume_id }: SharedVolume) =>
  fixture.query('DELETE FROM simulated_cluster.volume WHERE id = $1', [volume_id]);

/** It has failed when this ends. */
async function notice(volume: SharedVolume): Promise<void> {
  await fixture.get(VolumeWatch).look('1');
  await fixture.untilVolume(volume, ({ status }) => status === 'failed');
}

async function lose(volume: SharedVolume): Promise<void> {
  await takeAway(volume);
  await notice(volume);
}

it('a pod and a VM that run go on, where a volume of theirs has failed and they are to be restarted', async () => {
  const volume = await fixture.volume(team);
  const [pod, vm] = [await fixture.running(team, mountOf(volume)), await fixture.runningVm(team, mountOf(volume))];
  await lose(volume);
  const refusal = { code: 'conflict', message: refusalOf(volume) };
  expect(await errorOf(fixture.create(team, mountOf(volume)))).toMatchObject(refusal);
  expect(await errorOf(fixture.act(pod, 'restart', team))).toMatchObject(refusal);
  expect(await errorOf(actOnVm(vm, 'restart'))).toMatchObject(refusal);
  await fixture.work();
  expect(await fixture.pod(pod)).toMatchObject({ status: 'running', restarts: 0 });
  expect(await fixture.vm(vm)).toMatchObject({ status: 'running', restarts: 0 });
  // A start of what runs changes nothing.
  expect([(await fixture.act(pod, 'start', team)).status, (await actOnVm(vm, 'start')).status]).toEqual([
    'running',
    'running',
  ]);
});

it('a pod and a VM at rest are not started with a volume that has failed', async () => {
  const volume = await fixture.volume(team);
  const [pod, vm] = [await fixture.running(team, mountOf(volume)), await fixture.runningVm(team, mountOf(volume))];
  await fixture.act(pod, 'stop', team);
  await actOnVm(vm, 'stop');
  await fixture.until(pod, 'stopped');
  await fixture.untilVm(vm, ({ status }) => status === 'stopped');
  await lose(volume);
  for (const action of ['start', 'restart'] as const) {
    expect((await errorOf(fixture.act(pod, action, team))).message).toBe(refusalOf(volume));
    expect((await errorOf(actOnVm(vm, action))).message).toBe(refusalOf(volume));
  }
  expect((await fixture.pod(pod)).status).toBe('stopped');
});

it('a pod that waits for its GPU fails where a volume of it has failed meanwhile', async () => {
  const volume = await fixture.volume(team);
  const { startsAs } = fixture.neighbours;
  fixture.neighbours.startsAs = { status: 'waiting', reason: 'Waiting for a GPU.' };
  const pod = await fixture.create(team, mountOf(volume));
  await fixture.work();
  fixture.neighbours.startsAs = startsAs;
  await lose(volume);
  expect(await fixture.until(pod, 'failed')).toMatchObject({ reason: refusalOf(volume) });
});

it('a pod and a VM that are between two runs fail where a volume of theirs has failed meanwhile', async () => {
  const volume = await fixture.volume(team);
  const [pod, vm] = [await fixture.running(team, mountOf(volume)), await fixture.runningVm(team, mountOf(volume))];
  await takeAway(volume);
  await fixture.act(pod, 'restart', team);
  await actOnVm(vm, 'restart');
  await notice(volume);
  expect(await fixture.until(pod, 'failed')).toMatchObject({ reason: refusalOf(volume) });
  expect(await fixture.untilVm(vm, ({ status }) => status === 'failed')).toMatchObject({ reason: refusalOf(volume) });
});

it('a volume that its cluster has lost shows the used size that was last seen', async () => {
  const volume = await fixture.volume(team);
  await fixture.running(team, mountOf(volume));
  await fixture.get(VolumeWatch).look('1');
  await lose(volume);
  expect(await fixture.untilVolume(volume, () => true)).toMatchObject({ used_size_in_gb: 0.025 });
});
