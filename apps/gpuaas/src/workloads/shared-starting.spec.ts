import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { podWorkloads, type PodWorkload, type Workload } from '@atoll/contracts/gpuaas';
import { isAppError } from '@atoll/errors';
import { systemContext } from '@atoll/rpc';
import { expectErrors, inTransactionBeside, runs, untilLockWaits } from '@atoll/testing';
import fc from 'fast-check';
import { DataSource } from 'typeorm';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';
import { WorkloadSteps } from '../subscriptions/workload-steps.js';
import { behindLock, newPod, startsOn, type Held } from './shared-starting-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let other: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  [team, other] = [await fixture.team(), await fixture.team()];
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

const { start, startPod, crowd: crowdOn } = startsOn(() => fixture);
const occupied = async ({ subscription_id }: Held) =>
  (await fixture.query('SELECT FROM lease WHERE subscription_id = $1 AND workload_id IS NOT NULL', [subscription_id]))
    .length;

/** What is told of an answer: its status, or why it was refused. */
const toldBy = (answer: Promise<Workload | PodWorkload>): Promise<string> =>
  answer.then(
    ({ status }) => status,
    (error: unknown) => {
      if (!isAppError(error)) throw error;
      return error.message;
    },
  );

/**
 * Has all of these asked while one that came first waits, which is refused then. Returns the numbers of requests that
 * transactions had since, and the names of the requests as they came.
 */
const behind = (plug: Held, ask: () => Promise<unknown>[]) =>
  behindLock(fixture, plug.subscription_id, () => start(plug, { vgpus: 100 }), ask);

/** A pool of twenty shares that are sold three times, and what is subscribed to it behind a large one. */
const crowd = (...sizes: Parameters<typeof crowdOn>[2]) => crowdOn({ replicas: 20, overcommit: 3 }, [team, 40], sizes);

interface Asked {
  readonly name: string;
  readonly at: number;
  readonly vgpus: number;
  readonly isOfPod: boolean;
}

/** What each of these is told, and what is used afterwards, where one comes after the other. */
function inTurn(asked: readonly Asked[], sizes: readonly number[], slices: number, poolName: string) {
  const used = sizes.map(() => 0);
  let free = slices;
  const told = asked.map(({ name, at, vgpus }) => {
    const [size, before] = [sizes[at]!, used[at]!];
    if (before + vgpus > size)
      return [
        name,
        `The subscription has ${size} vGPUs and ${before} of them are in use. Available: ${size - before}.`,
      ];
    if (vgpus > free) {
      const what = `${vgpus} ${vgpus === 1 ? 'vGPU' : 'vGPUs'} of mps-20`;
      return [
        name,
        `Pool ${poolName} has no capacity for ${what}. Available: ${free > 0 ? `${free} of mps-20` : 'nothing'}.`,
      ];
    }
    used[at] = before + vgpus;
    free -= vgpus;
    return [name, 'pending'];
  });
  return { told, used };
}

it('law: starts that share a transaction are told, and hold, what they would one after the other, of users and of pods', async () => {
  const { pool, plug, all } = await crowd([team, 6], [other, 4], [team, 3]);
  // So that five are left, which is less than one may use.
  await start(plug, { vgpus: 15 });
  const asked = fc.record({ at: fc.nat({ max: 2 }), vgpus: fc.integer({ min: 1, max: 5 }), isOfPod: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(asked, { minLength: 2, maxLength: 9 }), async (each) => {
      const requests = each.map((one, number): Asked => ({ ...one, name: `job-${number}` }));
      const pods = new Map(requests.map(({ name }) => [name, newPod()]));
      let answers: Promise<string[]>[] = [];
      const { sizes, names } = await behind(plug, () => {
        answers = requests.map(async ({ name, at, vgpus, isOfPod }) => [
          name,
          await toldBy(
            isOfPod ? startPod(all[at]!, { vgpus, name, pod: pods.get(name)! }) : start(all[at]!, { vgpus, name }),
          ),
        ]);
        return answers;
      });
      expect(sizes).toEqual([requests.length]);
      const order = names.map((name) => requests.find((one) => one.name === name)!);
      const expected = inTurn(order, [6, 4, 3], 5, pool.pool_name);
      expect((await Promise.all(answers)).toSorted()).toEqual(expected.told.toSorted());
      expect(await Promise.all(all.map(occupied))).toEqual(expected.used);
      for (const pod of pods.values())
        await fixture.ask(podWorkloads.end, pod, systemContext('pods', { deadlineMs: 120_000 }));
      const left = await fixture.query<{ workload_id: string; team_id: string }>(
        `SELECT workload_id::text, team_id FROM workload WHERE pod_id IS NULL AND state IN ('pending', 'running') AND vgpus < 15`,
      );
      for (const one of left) await fixture.stopWorkload(one.team_id === team.team_id ? team : other, one);
      await fixture.settle();
    }),
    { ...runs(15), endOnFailure: true },
  );
}, 600_000);

/** Four subscriptions of one team and the other, in turn, and one in front of them. */
const four = async () => {
  const { plug, all } = await crowd([team, 2], [other, 2], [team, 2], [other, 2]);
  return { plug, all };
};

it('one that fails of a fault in the product fails alone: the others of its transaction are started, each once', async () => {
  expectErrors(/a fault/);
  const { plug, all } = await four();
  const steps = fixture.get(WorkloadSteps);
  const insertAll = steps.insertAll.bind(steps);
  let answers: Promise<string>[] = [];
  const { sizes } = await behind(plug, () => {
    jest.spyOn(steps, 'insertAll').mockImplementation(async (manager, rows) => {
      if (rows.some(({ values: { subscriptionId } }) => subscriptionId === all[1]!.subscription_id))
        throw new Error('a fault');
      return insertAll(manager, rows);
    });
    return (answers = all.map((one) =>
      start(one).then(
        ({ status }) => status,
        ({ code }: { code: string }) => code,
      ),
    ));
  });
  expect(sizes).toEqual([4, 1, 1, 1, 1]);
  expect(await Promise.all(answers)).toEqual(['pending', 'internal', 'pending', 'pending']);
  expect(await Promise.all(all.map(occupied))).toEqual([1, 0, 1, 1]);
});

it('where the connection is lost in the middle, all that share the transaction are told so, nothing of it is kept, and each may be asked for again', async () => {
  const { plug, all } = await four();
  const code = (answer: Promise<Workload | PodWorkload>) =>
    answer.then(
      ({ status }) => status,
      (error: { code: string }) => error.code,
    );
  let answers: Promise<string>[] = [];
  let batches: Promise<unknown> | undefined;
  await inTransactionBeside(fixture.get(DataSource), async (holder) => {
    // What comes late: rows and leases have been written by then.
    await holder.query('LOCK TABLE capacity_change IN EXCLUSIVE MODE');
    batches = behind(plug, () => (answers = all.map((one, at) => code(at % 2 === 0 ? start(one) : startPod(one)))));
    const [pid] = await untilLockWaits(fixture, { text: 'INSERT INTO capacity_change' });
    await fixture.query('SELECT pg_terminate_backend($1, 5000)', [pid]);
  });
  await batches;
  expect(await Promise.all(answers)).toEqual(['unavailable', 'unavailable', 'unavailable', 'unavailable']);
  expect(await Promise.all(all.map(occupied))).toEqual([0, 0, 0, 0]);
  expect(await Promise.all(all.map((one) => code(start(one))))).toEqual(['pending', 'pending', 'pending', 'pending']);
});
