import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { exposedServices, pods, vms, type Pod } from '@atoll/contracts/pods';
import { Writers } from '@atoll/database';
import { contextOf, errorOf } from '@atoll/testing';
import { PodsFixture, type ToldTeam } from './pods-fixture.js';
import { turnAtRoom } from './pods/pod-room.js';
import { PodStarts } from './pods/pod-start.js';

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

/** The same request twice: the second is under way, and asks for the subscription only when the first has run. */
async function twiceAtOnce(request: () => Promise<Pod>): Promise<[Pod, Pod]> {
  const starts = fixture.get(PodStarts);
  const subscription = starts.subscription.bind(starts);
  let first: Promise<Pod> | undefined;
  jest.spyOn(starts, 'subscription').mockImplementationOnce(async (...asked) => {
    first = request();
    await fixture.until(await first, 'running');
    return subscription(...asked);
  });
  const second = await request();
  if (!first) throw new Error('The subscription was not asked for.');
  return [await first, second];
}

it('a pod that fills its subscription is shown to a repeated creation that was under way meanwhile', async () => {
  const full = await fixture.team('member', 1);
  const asked = {
    team_id: full.team_id,
    subscription_id: full.subscription_id,
    name: 'job',
    image: 'python:3.13',
  };
  const [created, repeated] = await twiceAtOnce(() =>
    fixture.call(pods.create, asked, full.member, under('create pod')),
  );
  expect(repeated).toEqual(created);
});

it('a creation that is refused, and has no idempotency key, waits for no other of its subscription', async () => {
  const full = await fixture.team('member', 1);
  const asked = { team_id: full.team_id, subscription_id: full.subscription_id, name: 'job', image: 'python:3.13' };
  await fixture.running(full);
  const held = Promise.withResolvers<void>();
  const context = contextOf(full.member);
  const holding = fixture.get(Writers).run(turnAtRoom(full.subscription_id), context, () => held.promise);
  expect((await errorOf(fixture.call(pods.create, asked, full.member))).code).toBe('insufficient_capacity');
  held.resolve();
  await holding;
});

it('a pod that fills its subscription is shown to a repeated start that was under way meanwhile', async () => {
  const full = await fixture.team('member', 1);
  const pod = await fixture.running(full);
  await fixture.act(pod, 'stop', full);
  const asked = { pod_name: pod.pod_name, action: 'start' } as const;
  const startUnder = (key?: string) => () => fixture.call(pods.act, asked, full.member, key ? under(key) : undefined);
  await fixture.until(pod, 'stopped');
  const [started, repeated] = await twiceAtOnce(startUnder('start pod'));
  expect(repeated).toEqual(started);

  await fixture.act(pod, 'stop', full);
  await fixture.until(pod, 'stopped');
  const [, without] = await twiceAtOnce(startUnder());
  expect(without.status).toBe('running');
});
