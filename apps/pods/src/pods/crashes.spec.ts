import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { pods, type Pod } from '@atoll/contracts/pods';
import { MachineWorkers } from '@atoll/state-machine';
import { runs, timeoutFactor } from '@atoll/testing';
import fc from 'fast-check';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { PodStarts } from './pod-start.js';

/**
 * A process dies at one of its calls to others: before the call has had its effect, or after it and before anybody has
 * read the answer.
 */
interface Death {
  readonly at: (typeof mortalCalls)[number];
  /** Calls of that name that go well before. */
  readonly after: number;
  readonly hasEffect: boolean;
}

const mortalCalls = ['workload', 'startPod', 'observePods', 'stopPod', 'endWorkload'] as const;
const patienceMs = 90_000 * timeoutFactor;
const lawMs = 120_000 * timeoutFactor;
const death = fc.record({ at: fc.constantFrom(...mortalCalls), after: fc.nat(1), hasEffect: fc.boolean() });
const deaths = fc.array(death, { minLength: 3, maxLength: 15 });

let fixture: PodsFixture;
let team: ToldTeam;
let planned: Death[] = [];
let died = Promise.withResolvers<'died'>();
/** The calls of processes that are dead. They end with the spec. */
const abandoned: ((error: Error) => void)[] = [];

beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 4);
  const driver = await fixture.simulated.driverOf('1');
  const mortal = new Proxy(driver, {
    get: (target, name): unknown => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const call = (...words: unknown[]): Promise<unknown> => Reflect.apply(value, target, words) as Promise<unknown>;
      const mortal = mortalCalls.find((one) => one === name);
      return mortal ? (...words: unknown[]) => mayDie(mortal, () => call(...words)) : call;
    },
  });
  jest.spyOn(fixture.simulated, 'driverOf').mockImplementation(() => Promise.resolve(mortal));
  const starts = fixture.get(PodStarts);
  const [workload, endWorkload] = [starts.workload.bind(starts), starts.endWorkload.bind(starts)];
  jest.spyOn(starts, 'workload').mockImplementation((pod) => mayDie('workload', () => workload(pod)));
  jest.spyOn(starts, 'endWorkload').mockImplementation((pod) => mayDie('endWorkload', () => endWorkload(pod)));
});
afterAll(async () => {
  for (const end of abandoned) end(new Error('The process is dead.'));
  jest.restoreAllMocks();
  await fixture.stop();
});

async function mayDie<T>(name: Death['at'], call: () => Promise<T>): Promise<T> {
  const at = planned.findIndex((one) => one.at === name);
  const next = planned[at];
  if (!next) return call();
  if (next.after > 0) {
    planned = planned.with(at, { ...next, after: next.after - 1 });
    return call();
  }
  planned = planned.toSpliced(at, 1);
  if (next.hasEffect) await call();
  const { promise, reject } = Promise.withResolvers<T>();
  abandoned.push(reject);
  died.resolve('died');
  return promise;
}

/** Another process takes over, as it does when the claims of a dead one have expired. */
async function takeOver(): Promise<void> {
  died = Promise.withResolvers();
  for (const statement of [
    `UPDATE pod SET claim_token = NULL, claimed_until = NULL, due_at = clock_timestamp(), parked_until = NULL WHERE claim_token IS NOT NULL`,
    `UPDATE pod SET due_at = clock_timestamp(), parked_until = NULL WHERE deadline_at IS NOT NULL AND parked_until IS NOT NULL`,
  ])
    await fixture.query(statement);
}

async function comesTo(pod: Pod, isThere: () => Promise<boolean>): Promise<void> {
  const workers = fixture.get(MachineWorkers).workers;
  for (const lateMs = Date.now() + patienceMs; !(await isThere());) {
    if (Date.now() > lateMs)
      throw new Error(
        `Still ${JSON.stringify(await fixture.query('SELECT * FROM pod WHERE pod_id = $1', [pod.pod_id]))}.`,
      );
    for (const worker of workers) {
      const outcome = await Promise.race([worker.doNext(), died.promise]);
      if (outcome === 'died') break;
    }
    await takeOver();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** What runs of the pod: on the cluster by run, and at gpuaas by start. */
async function whatRuns({ pod_id }: Pod) {
  const cluster = fixture.simulated.world.cluster('gpuaas-1');
  const signal = AbortSignal.timeout(patienceMs);
  const refs = [];
  for await (const { ref } of cluster.list(signal)) if (ref.id === pod_id) refs.push(ref);
  const sights = await cluster.observePods(refs, signal);
  const workloads = [...fixture.neighbours.workloads.values()].filter(
    (workload) => workload.pod_id === pod_id && workload.status === 'running',
  );
  return {
    runs: refs.filter((_ref, at) => sights[at]?.phase === 'running').map(({ run }) => run),
    starts: workloads.map(({ start }) => start),
  };
}

it(
  'law: whichever process dies at whichever call, a pod runs once with one workload, or not at all with none, and is billed for just that',
  async () => {
    await fc.assert(
      fc.asyncProperty(deaths, fc.integer({ min: 1, max: 3 }), async (plan, lives) => {
        planned = plan;
        const pod = await fixture.create(team);
        const is = (status: string) => async () => (await fixture.pod(pod)).status === status;
        for (let life = 1; life <= lives; life += 1) {
          await comesTo(pod, is('running'));
          const [{ run = 0, start = 0 } = {}] = await fixture.query<{ run: number; start: number }>(
            'SELECT run, start FROM pod WHERE pod_id = $1',
            [pod.pod_id],
          );
          expect(await whatRuns(pod)).toEqual({ runs: [run], starts: [start] });
          await fixture.act(pod, 'stop', team);
          await comesTo(pod, is('stopped'));
          expect(await whatRuns(pod)).toEqual({ runs: [], starts: [] });
          if (life < lives) await fixture.act(pod, 'start', team);
        }
        await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
        const isDeleted = async () =>
          (await fixture.query(`SELECT FROM pod WHERE pod_id = $1 AND state = 'deleted'`, [pod.pod_id])).length > 0;
        await comesTo(pod, isDeleted);
        expect(await whatRuns(pod)).toEqual({ runs: [], starts: [] });
        const billed = (await fixture.usageOf(`pod:${pod.pod_id}`)).map(({ quantity }) => quantity);
        expect(billed).toEqual(Array.from({ length: lives }, () => ['1', '0']).flat());
      }),
      runs(8),
    );
    expect(abandoned.length).toBeGreaterThan(0);
  },
  lawMs,
);
