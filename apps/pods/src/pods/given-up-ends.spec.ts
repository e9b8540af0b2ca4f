import { afterEach, beforeAll, afterAll, describe, expect, it, jest } from '@jest/globals';
import { pods, vms, type Pod } from '@atoll/contracts/pods';
import { AppError } from '@atoll/errors';
import { Logger } from '@nestjs/common';
import { timeoutFactor } from '@atoll/testing';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { billed, endUnseen } from '../usage/late-ends-fixture.js';
import { GivenUpEnds } from './given-up-ends.js';

let fixture: PodsFixture;
let team: ToldTeam;
const away = new AppError('unavailable', 'It is away.');

beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 10);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterEach(() => {
  jest.restoreAllMocks();
  fixture.neighbours.failing = undefined;
});
afterAll(() => fixture.stop());

const clusterIsAway = () => jest.spyOn(fixture.simulated, 'driverOf').mockRejectedValue(away);
const outstanding = (id: string) => fixture.query('SELECT run, start FROM given_up_end WHERE id = $1', [id]);
/** Works until a row has come to this state: its hour is over at once. */
async function giveUp(table: 'pod' | 'vm', key: string, id: string, state: string): Promise<void> {
  const found = () => fixture.query(`SELECT FROM ${table} WHERE ${key} = $1 AND state = $2`, [id, state]);
  for (const lateMs = Date.now() + 60_000 * timeoutFactor; (await found()).length === 0;) {
    if (Date.now() > lateMs) throw new Error(`It does not come to ${state}.`);
    await fixture.query(
      `UPDATE ${table} SET deadline_at = now() - interval '1 s' WHERE ${key} = $1 AND deadline_at IS NOT NULL`,
      [id],
    );
    await fixture.hurry();
    await fixture.work();
  }
}
/** Looks until nothing is outstanding. */
async function pay(id: string): Promise<void> {
  for (const lateMs = Date.now() + 60_000 * timeoutFactor; (await outstanding(id)).length > 0;) {
    if (Date.now() > lateMs) throw new Error('It is still outstanding.');
    await fixture.query('UPDATE given_up_end SET try_at = clock_timestamp() WHERE id = $1', [id]);
    await fixture.get(GivenUpEnds).look('1');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
async function phaseOf(kind: 'pod' | 'vm', id: string): Promise<string | undefined> {
  const cluster = fixture.simulated.world.cluster('gpuaas-1');
  const signal = AbortSignal.timeout(30_000 * timeoutFactor);
  const [sight] = await (kind === 'pod'
    ? cluster.observePods([{ kind, id, run: 1 }], signal)
    : cluster.observeVms([{ kind, id, run: 1 }], signal));
  return sight?.phase;
}
const workloadOf = ({ pod_id }: Pod, start = 1) => fixture.neighbours.workload(pod_id, start)?.status;

describe('an end that is given up', () => {
  it('is outstanding: a pod that was deleted while gpuaas was away ends its workload when it is back, also one that never ran', async () => {
    const [ran, waiting] = [
      await fixture.running(team),
      await fixture.create(team, { image: 'registry.example/pull-hang' }),
    ];
    await fixture.until(waiting, 'pulling');
    for (const pod of [ran, waiting]) await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
    fixture.neighbours.failing = away;
    for (const pod of [ran, waiting]) {
      await giveUp('pod', 'pod_id', pod.pod_id, 'deleted');
      expect([workloadOf(pod), await outstanding(pod.pod_id)]).toEqual(['running', [{ run: 1, start: 1 }]]);
    }
    const warned = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    while (
      (await outstanding(ran.pod_id)).length + (await outstanding(waiting.pod_id)).length === 2 &&
      warned.mock.calls.length === 0
    ) {
      await fixture.query('UPDATE given_up_end SET try_at = clock_timestamp()');
      await fixture.get(GivenUpEnds).look('1');
    }
    expect(warned.mock.calls.flat()).toEqual([
      expect.stringMatching(/^Cannot end [12] of 2 runs of GPU service 1 that were given up; retrying: /),
    ]);
    fixture.neighbours.failing = undefined;
    for (const pod of [ran, waiting]) {
      expect(workloadOf(pod)).toBe('running');
      await pay(pod.pod_id);
      expect(workloadOf(pod)).toBe('stopped');
    }
  });

  it('holds the slices of a pod until its cluster is back and the run is over', async () => {
    const pod = await fixture.running(team);
    await fixture.act(pod, 'stop', team);
    clusterIsAway();
    await giveUp('pod', 'pod_id', pod.pod_id, 'failed');
    await fixture.get(GivenUpEnds).look('1');
    expect([await phaseOf('pod', pod.pod_id), workloadOf(pod)]).toEqual(['running', 'running']);
    jest.restoreAllMocks();
    await fixture.query('UPDATE given_up_end SET try_at = clock_timestamp()');
    await fixture.get(GivenUpEnds).look('1');
    // It has been asked to stop, and takes its time.
    if ((await phaseOf('pod', pod.pod_id)) !== 'ended') expect(workloadOf(pod)).toBe('running');
    await pay(pod.pod_id);
    expect([await phaseOf('pod', pod.pod_id), workloadOf(pod)]).toEqual(['ended', 'stopped']);
  });

  it('of one start is not that of the next', async () => {
    const pod = await fixture.running(team);
    await fixture.act(pod, 'stop', team);
    clusterIsAway();
    await giveUp('pod', 'pod_id', pod.pod_id, 'failed');
    jest.restoreAllMocks();
    await fixture.act(pod, 'start', team);
    const again = await fixture.until(pod, 'running');
    await pay(pod.pod_id);
    expect([workloadOf(pod), workloadOf(pod, 2), (await fixture.pod(again)).status]).toEqual([
      'stopped',
      'running',
      'running',
    ]);
  });

  it.each<[string, string, (pod: Pod) => Promise<unknown>]>([
    ['stopped', 'failed', (pod) => fixture.act(pod, 'stop', team)],
    ['deleted', 'deleted', (pod) => fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member)],
  ])('of a run that had ended by itself before its pod was %s bills the pod until then', async (_how, state, end) => {
    const pod = await fixture.running(team, { restart: 'never' });
    const endedAt = await endUnseen(fixture, { kind: 'pod', id: pod.pod_id, run: 1 });
    clusterIsAway();
    await end(pod);
    await giveUp('pod', 'pod_id', pod.pod_id, state);
    jest.restoreAllMocks();
    await pay(pod.pod_id);
    expect(billed(await fixture.usageOf(`pod:${pod.pod_id}`))).toEqual([[expect.any(String), endedAt?.toISOString()]]);
  });

  it('of a VM whose guest had ended by itself bills the VM until then', async () => {
    const vm = await fixture.runningVm(team);
    const endedAt = await endUnseen(fixture, { kind: 'vm', id: vm.instance_id, run: 1 });
    clusterIsAway();
    await fixture.call(vms.delete, { instance_id: vm.instance_id }, team.member);
    await giveUp('vm', 'instance_id', vm.instance_id, 'deleted');
    jest.restoreAllMocks();
    await pay(vm.instance_id);
    expect(billed(await fixture.usageOf(`vm:${vm.instance_id}`))).toEqual([
      [expect.any(String), endedAt?.toISOString()],
    ]);
  });

  it('of one run of a pod is not that of the next, for which the pod is billed as long as it ran', async () => {
    const pod = await fixture.running(team, { restart: 'never' });
    await endUnseen(fixture, { kind: 'pod', id: pod.pod_id, run: 1 });
    clusterIsAway();
    await fixture.act(pod, 'stop', team);
    await giveUp('pod', 'pod_id', pod.pod_id, 'failed');
    jest.restoreAllMocks();
    await fixture.act(pod, 'start', team);
    await fixture.until(pod, 'running');
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    const facts = await fixture.usageOf(`pod:${pod.pod_id}`);
    await pay(pod.pod_id);
    expect(await fixture.usageOf(`pod:${pod.pod_id}`)).toEqual(facts);
  });

  it('of a VM ends its run, too', async () => {
    const vm = await fixture.runningVm(team);
    await fixture.call(vms.stop, { instance_id: vm.instance_id }, team.member);
    clusterIsAway();
    await giveUp('vm', 'instance_id', vm.instance_id, 'failed');
    jest.restoreAllMocks();
    expect(await phaseOf('vm', vm.instance_id)).toBe('running');
    await pay(vm.instance_id);
    expect(await phaseOf('vm', vm.instance_id)).toBe('ended');
  });
});
