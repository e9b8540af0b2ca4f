import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { podWorkloadChanged } from '@atoll/contracts/gpuaas';
import { pods, vms, type Pod, type Vm } from '@atoll/contracts/pods';
import { AppError } from '@atoll/errors';
import { PodSteps } from '../pods/pod-steps.js';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { billed, endUnseen } from './late-ends-fixture.js';
import { LateEnds } from './late-ends.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 1, memory_gb: 1 });
});
afterEach(() => {
  jest.restoreAllMocks();
  fixture.neighbours.failing = undefined;
});
afterAll(() => fixture.stop());

const runningPod = (more: Parameters<PodsFixture['running']>[1] = {}) =>
  fixture.running(team, { restart: 'never', ...more });
const vmCall = (operation: 'stop' | 'delete' | 'restart', { instance_id }: Vm) =>
  fixture.call(vms[operation], { instance_id }, team.member);
const deletePod = ({ pod_name }: Pod) => fixture.call(pods.delete, { pod_name }, team.member);
const factsOfPod = ({ pod_id }: Pod) => fixture.usageOf(`pod:${pod_id}`);
const factsOfVm = ({ instance_id }: Vm) => fixture.usageOf(`vm:${instance_id}`);
const endPod = async ({ pod_id }: Pod) =>
  (await endUnseen(fixture, { kind: 'pod', id: pod_id, run: 1 }))?.toISOString();
const endVm = async ({ instance_id }: Vm) =>
  (await endUnseen(fixture, { kind: 'vm', id: instance_id, run: 1 }))?.toISOString();
/** When it was seen to run, and when it left that. */
const seenRunning = async (machine: 'pod' | 'vm', id: string) => {
  const rows = await fixture.query<{ at: Date }>(
    `SELECT at FROM machine_history WHERE machine = $1 AND instance = $2 AND 'running' IN (from_state, to_state) ORDER BY id`,
    [machine, id],
  );
  return rows.map(({ at }) => at.toISOString());
};

/** The clock of the cluster is an hour behind. */
const setClusterBack = async () => {
  const driver = await fixture.simulated.driverOf('1');
  const observe = driver.observePods.bind(driver);
  jest.spyOn(driver, 'observePods').mockImplementation(async (...asked) =>
    (await observe(...asked)).map((sight) => {
      if (sight.phase !== 'ended') return sight;
      return { ...sight, exit: { ...sight.exit, at: new Date(sight.exit.at.getTime() - 3_600_000) } };
    }),
  );
};

describe('a pod whose run had ended by itself, which nobody had seen', () => {
  it.each<[string, (pod: Pod) => Promise<unknown>, (pod: Pod) => Promise<unknown>]>([
    ['stopped', (pod) => fixture.act(pod, 'stop', team), (pod) => fixture.until(pod, 'stopped')],
    ['deleted', deletePod, (pod) => fixture.untilDeleted(pod)],
    [
      'stopped with its subscription',
      ({ pod_id }) => fixture.tell(podWorkloadChanged, { pod_id, start: 1, status: 'stopping', reason: null }),
      (pod) => fixture.until(pod, 'stopped'),
    ],
    [
      'restarted and stopped at once',
      async (pod) => {
        await fixture.act(pod, 'restart', team);
        await fixture.act(pod, 'stop', team);
      },
      (pod) => fixture.until(pod, 'stopped'),
    ],
  ])('is billed until then when it is %s', async (_name, end, untilOver) => {
    const pod = await runningPod();
    const endedAt = await endPod(pod);
    await end(pod);
    await untilOver(pod);
    const [since] = await seenRunning('pod', pod.pod_id);
    expect(billed(await factsOfPod(pod))).toEqual([[since, endedAt]]);
  });

  it('is billed until then when it is restarted, and again from when its next run is seen', async () => {
    const pod = await runningPod();
    const endedAt = await endPod(pod);
    await fixture.act(pod, 'restart', team);
    await fixture.untilIs(pod, ({ status, restarts }) => status === 'running' && restarts === 1);
    const [since, , again] = await seenRunning('pod', pod.pod_id);
    expect(billed(await factsOfPod(pod))).toEqual([
      [since, endedAt],
      [again, null],
    ]);
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    const until = (await seenRunning('pod', pod.pod_id)).at(-1);
    expect(billed(await factsOfPod(pod)).at(-1)).toEqual([again, until]);
  });

  it('is billed on where its policy has another run follow: its restarts are billed', async () => {
    const pod = await runningPod({ restart: 'on_failure' });
    await endPod(pod);
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    expect(billed(await factsOfPod(pod))).toEqual([await seenRunning('pod', pod.pod_id)]);
  });

  it('has its end corrected once, however often its step runs, and whatever a frozen process sees of it afterwards', async () => {
    const pod = await runningPod();
    const at = new Date((await endPod(pod)) ?? 0);
    await fixture.act(pod, 'stop', team);
    const [raw = {}] = await fixture.query<object>('SELECT * FROM pod WHERE pod_id = $1', [pod.pod_id]);
    const seeLate = () =>
      fixture.get(LateEnds).tell(fixture.get(PodSteps).rowOf(raw), { at, code: 143, reason: null, outOfMemory: 'no' });
    fixture.neighbours.failing = new AppError('unavailable', 'It is away.');
    for (let tries = 0; tries < 3; tries += 1) {
      await fixture.hurry();
      await fixture.work();
    }
    expect(await fixture.pod(pod)).toMatchObject({ status: 'stopping' });
    fixture.neighbours.failing = undefined;
    await fixture.until(pod, 'stopped');
    await seeLate();
    await fixture.act(pod, 'start', team);
    await fixture.until(pod, 'running');
    await deletePod(pod);
    await fixture.untilDeleted(pod);
    await seeLate();
    const facts = await factsOfPod(pod);
    expect(facts.map(({ quantity }) => quantity)).toEqual(['1', '0', '0', '1', '0']);
    expect(facts[1]?.time).toBe(at.toISOString());
  });

  it('is not billed before it was seen to run, nor for it, where the clock of its cluster is behind', async () => {
    const pod = await runningPod();
    await endPod(pod);
    await setClusterBack();
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    const [since] = await seenRunning('pod', pod.pod_id);
    const facts = await factsOfPod(pod);
    expect(facts.map(({ time }) => time).slice(0, 2)).toEqual([since, since]);
    expect(billed(facts).map(([from, until]) => from === until)).not.toContain(false);
  });

  it('is billed until then also where it ran for longer than its history is kept', async () => {
    const pod = await runningPod();
    const [since] = await seenRunning('pod', pod.pod_id);
    await fixture.query(`DELETE FROM machine_history WHERE machine = 'pod' AND instance = $1`, [pod.pod_id]);
    const endedAt = await endPod(pod);
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    expect(billed(await factsOfPod(pod))).toEqual([[since, endedAt]]);
  });

  it('is billed for the runs before it, however far the clock of its cluster is behind', async () => {
    const pod = await runningPod();
    await fixture.act(pod, 'restart', team);
    await fixture.untilIs(pod, ({ status, restarts }) => status === 'running' && restarts === 1);
    const [since, , again] = await seenRunning('pod', pod.pod_id);
    await endUnseen(fixture, { kind: 'pod', id: pod.pod_id, run: 2 });
    await setClusterBack();
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    expect(billed(await factsOfPod(pod))).toEqual([[since, again]]);
  });

  it('nor that it ran, is billed for the runs before it alone', async () => {
    const pod = await runningPod();
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    const facts = await factsOfPod(pod);
    const driver = await fixture.simulated.driverOf('1');
    const preparing = [{ phase: 'preparing', pull: null, trouble: null }] as const;
    jest.spyOn(driver, 'observePods').mockResolvedValue([...preparing]);
    await fixture.act(pod, 'start', team);
    await fixture.until(pod, 'pulling');
    await fixture.work();
    jest.restoreAllMocks();
    const run = { kind: 'pod', id: pod.pod_id, run: 2 } as const;
    while (!(await endUnseen(fixture, run))) await fixture.hurry();
    await setClusterBack();
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    expect(await factsOfPod(pod)).toEqual(facts);
  });
});

describe('a pod whose longest duration is over', () => {
  const isOver = async ({ pod_id }: Pod) => {
    await fixture.query(
      `UPDATE pod SET stops_at = clock_timestamp(), due_at = clock_timestamp(), parked_until = NULL WHERE pod_id = $1`,
      [pod_id],
    );
    await fixture.work();
  };

  it('and whose run had ended by itself before anyone saw that has ended, and was not stopped', async () => {
    const pod = await runningPod({ max_duration_minutes: 1 });
    const endedAt = await endPod(pod);
    await isOver(pod);
    const reason = 'Its process ended with exit code 143.';
    expect(await fixture.until(pod, 'failed')).toMatchObject({ exit_code: 143, reason });
    const [since] = await seenRunning('pod', pod.pod_id);
    expect(billed(await factsOfPod(pod))).toEqual([[since, endedAt]]);
  });

  it('between two runs, is stopped', async () => {
    const pod = await runningPod({ restart: 'always', max_duration_minutes: 1 });
    await endPod(pod);
    await fixture.query(
      `UPDATE pod SET state = 'restarting', next_run_at = clock_timestamp() + interval '1 hour', deadline_at = clock_timestamp() + interval '1 hour'
       WHERE pod_id = $1`,
      [pod.pod_id],
    );
    await isOver(pod);
    const reason = 'It was stopped after 1 minute, its maximum duration.';
    expect(await fixture.until(pod, 'stopped')).toMatchObject({ restarts: 0, reason });
  });

  it.each([
    ['does not answer', () => Promise.reject(new AppError('unavailable', 'It is away.'))],
    ['hangs', () => new Promise<never>(() => undefined)],
  ])('is stopped also where its cluster %s', async (_name, away) => {
    const pod = await runningPod({ max_duration_minutes: 1 });
    const endedAt = await endPod(pod);
    jest.spyOn(fixture.simulated, 'driverOf').mockImplementationOnce(away);
    await isOver(pod);
    const reason = 'It was stopped after 1 minute, its maximum duration.';
    expect(await fixture.until(pod, 'stopped')).toMatchObject({ exit_code: 143, reason });
    const [since] = await seenRunning('pod', pod.pod_id);
    expect(billed(await factsOfPod(pod))).toEqual([[since, endedAt]]);
  });
});

describe('a VM whose guest had ended, which nobody had seen', () => {
  it.each<['stop' | 'delete', (vm: Vm) => Promise<unknown>]>([
    ['stop', (vm) => fixture.untilVm(vm, ({ status }) => status === 'stopped')],
    ['delete', (vm) => fixture.untilVmDeleted(vm)],
  ])('is billed until then after %s', async (end, untilOver) => {
    const vm = await fixture.runningVm(team);
    const endedAt = await endVm(vm);
    await vmCall(end, vm);
    await untilOver(vm);
    const [since] = await seenRunning('vm', vm.instance_id);
    expect(billed(await factsOfVm(vm))).toEqual([[since, endedAt]]);
  });

  it('is billed until then after a restart, and again from when its next run is seen', async () => {
    const vm = await fixture.runningVm(team);
    const endedAt = await endVm(vm);
    await vmCall('restart', vm);
    await fixture.untilVm(vm, ({ status, restarts }) => status === 'running' && restarts === 1);
    const [since, , again] = await seenRunning('vm', vm.instance_id);
    expect(billed(await factsOfVm(vm))).toEqual([
      [since, endedAt],
      [again, null],
    ]);
  });
});

describe('a run that ends after its end was requested', () => {
  /** Its process ignores TERM, but it ends before its grace does. */
  const endNow = (id: string) =>
    fixture.query('UPDATE simulated_cluster.run SET ends_at = clock_timestamp() WHERE id = $1', [id]);

  it('of a pod that is restarted and then stopped, is no end of the pod', async () => {
    const pod = await runningPod({ name: 'job-hang' });
    await fixture.act(pod, 'restart', team);
    await fixture.work();
    await endNow(pod.pod_id);
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    const facts = await factsOfPod(pod);
    const [{ at } = {}] = await fixture.query<{ at: Date }>(
      `SELECT at FROM machine_history WHERE machine = 'pod' AND instance = $1 AND to_state = 'stopping'`,
      [pod.pod_id],
    );
    expect(facts.map(({ quantity }) => quantity)).toEqual(['1', '0']);
    expect(facts[1]?.time).toBe(at?.toISOString());
  });

  it('of a VM, changes nothing, whatever is requested meanwhile', async () => {
    const vm = await fixture.runningVm(team, { name: 'vm-hang' });
    await vmCall('restart', vm);
    await fixture.work();
    await endNow(vm.instance_id);
    await vmCall('stop', vm);
    await fixture.untilVm(vm, ({ status }) => status === 'stopped');
    await vmCall('delete', vm);
    await fixture.untilVmDeleted(vm);
    const facts = await factsOfVm(vm);
    expect(facts.length).toBe(2);
    expect(billed(facts)).toEqual([await seenRunning('vm', vm.instance_id)]);
  });
});
