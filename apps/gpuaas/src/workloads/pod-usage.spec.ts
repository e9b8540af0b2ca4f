import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { podUsages, podWorkloads, type PodUsage } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';
import {
  seriesOf,
  MetricsSource,
  type CoursePoint,
  type MigInstance,
  type SubscriptionMetrics,
} from '../metrics/metrics-source.js';

/** Measures the instances in `known` alone. */
class Meter extends MetricsSource {
  readonly known = new Map<string, number>();
  asked: readonly MigInstance[] = [];

  read(): Promise<Map<string, SubscriptionMetrics>> {
    return Promise.resolve(new Map<string, SubscriptionMetrics>());
  }

  course(): Promise<CoursePoint[]> {
    return Promise.resolve([]);
  }

  peaks(instances: readonly MigInstance[]): Promise<Map<string, number>> {
    this.asked = instances;
    return Promise.resolve(new Map([...this.known].filter(([key]) => instances.map(seriesOf).includes(key))));
  }
}

const meter = new Meter();
const context = () => systemContext('pods');
let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start({ metrics: meter });
  team = await fixture.team();
});
afterAll(() => fixture.stop());

/** A pod that runs on slices of a new pool with these terms. */
async function podOn(terms: object, vgpus: number): Promise<{ pod_id: string; start: number }> {
  const { pool_id } = await fixture.pool(terms);
  const { subscription_id } = await fixture.subscribe(team, { pool_id, vgpus });
  await fixture.settle();
  const pod = { pod_id: newId(), start: 1 };
  await fixture.ask(podWorkloads.start, { ...pod, subscription_id, vgpus, pod_name: 'job' }, context());
  await fixture.settle();
  return pod;
}
const read = async (...pods: { pod_id: string; start: number; is_idle?: boolean }[]): Promise<PodUsage[]> =>
  (await fixture.ask(podUsages.read, { seconds: 120, pods }, context())).data;

it('is the greatest of any own slice, rounded up, and nothing where one of them has no figure', async () => {
  const pod = await podOn({}, 2);
  expect(await read(pod)).toEqual([{ ...pod, kind: 'no_data', peak_percent: null }]);
  expect(new Set(meter.asked.map(seriesOf)).size).toBe(2);
  const [one, two] = meter.asked.map(seriesOf);
  meter.known.set(one ?? '', 3.01);
  expect(await read(pod)).toEqual([{ ...pod, kind: 'no_data', peak_percent: null }]);
  meter.known.set(two ?? '', 0);
  expect(await read(pod)).toEqual([{ ...pod, kind: 'measured', peak_percent: 4 }]);
});

it('is asked for with what the pods service says of simulated pods', async () => {
  const [one, other] = [await podOn({}, 1), await podOn({}, 1)];
  await read(one, { ...other, is_idle: true });
  expect(meter.asked.map(({ isIdle }) => isIdle)).toEqual([false, true]);
});

it('is not told where the GPU is shared by MPS or by turns, nor of a pod that does not run', async () => {
  const [mps, turns] = [
    await podOn({ mechanism: 'mps', replicas: 4 }, 1),
    await podOn({ sharing_mode: 'Temporal', mechanism: 'time_slicing', replicas: 4 }, 1),
  ];
  const unknown = { pod_id: newId(), start: 1 };
  expect((await read(mps, unknown, turns)).map(({ pod_id, kind }) => [pod_id, kind])).toEqual([
    [mps.pod_id, 'shared'],
    [unknown.pod_id, 'no_data'],
    [turns.pod_id, 'shared'],
  ]);
});

it('is for services alone', async () => {
  expect((await errorOf(fixture.call(podUsages.read, { seconds: 60, pods: [] }))).code).toBe('forbidden');
});
