import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { subscriptions } from '@atoll/contracts/gpuaas';
import { teamChanged } from '@atoll/contracts/teams';
import { handleOnce } from '@atoll/database';
import { aTeam, contextOf, memberOf, untilLockWaits } from '@atoll/testing';
import { DataSource, type QueryRunner } from 'typeorm';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';
import { behindLock, newPod, startsOn, type Held } from './shared-starting-fixture.js';
import { WorkloadStarting } from './workload-starting.js';
import { WorkloadsService } from './workload.service.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let other: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  [team, other] = [await fixture.team(), await fixture.team()];
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

const { held, start, startPod, crowd: crowdOn } = startsOn(() => fixture);

/** What is told of an answer: its status, or the code of the refusal. */
const toldBy = (answer: Promise<{ status: string }>): Promise<string> =>
  answer.then(
    ({ status }) => status,
    ({ code }: { code: string }) => code,
  );
const rowsOf = ({ subscription_id }: Held) =>
  fixture.query('SELECT FROM workload WHERE subscription_id = $1', [subscription_id]);

/** Subscriptions to one pool whose slices are sold five times. */
const crowd = (sizes: Parameters<typeof crowdOn>[2], count = 1) =>
  crowdOn({ replicas: 48, overcommit: 5 }, [team, 1], sizes, count);

/** Has all of these asked while one that came first waits. */
const behind = (plug: Held, ask: () => Promise<unknown>[], meanwhile?: () => Promise<unknown>) =>
  behindLock(fixture, plug.subscription_id, () => start(plug), ask, meanwhile);

/** Works in a transaction of another process until it is told to commit. */
async function elsewhere(work: (runner: QueryRunner) => Promise<unknown>): Promise<() => Promise<void>> {
  const runner = fixture.get(DataSource).createQueryRunner();
  await runner.connect();
  await runner.startTransaction();
  await work(runner);
  return async () => {
    await runner.commitTransaction();
    await runner.release();
  };
}

it('of users and of pods of several teams 150 at once are all started in one pool, by a bounded number of transactions, once each', async () => {
  const { plug, all } = await crowd(
    Array.from({ length: 3 }, () => [team, 25] as const).concat(Array.from({ length: 3 }, () => [other, 25] as const)),
    4,
  );
  const each = Array.from({ length: 150 }, (_, at) => ({ on: all[at % 6]!, key: `key ${at}`, pod: newPod() }));
  const ask = () => each.map(({ on, key, pod }, at) => (at % 3 === 0 ? startPod(on, { pod }) : start(on, { key })));
  let answers: ReturnType<typeof ask> = [];
  const { sizes } = await behind(plug, () => (answers = ask()));
  expect(sizes).toEqual([100, 50]);
  const started = await Promise.all(answers);
  expect(new Set(started.map(({ workload_id }) => workload_id)).size).toBe(150);
  expect(await Promise.all(ask())).toEqual(started);
  expect((await Promise.all(all.map(rowsOf))).map(({ length }) => length)).toEqual(all.map(() => 25));
});

it('the workload of one team is in the next transaction, however many pods of another team start before it', async () => {
  const { plug, all } = await crowd(
    [
      [team, 120],
      [other, 1],
    ],
    3,
  );
  const asked = jest.spyOn(fixture.get(WorkloadStarting), 'start');
  const answered: string[] = [];
  const ask = () => Array.from({ length: 110 }, () => startPod(all[0]!).then(() => answered.push('pod')));
  let last: Promise<unknown> = Promise.resolve();
  const { sizes } = await behind(plug, ask, async () => {
    last = start(all[1]!).then(() => answered.push('workload'));
    while (asked.mock.calls.length < 112) await delay(5);
  });
  await last;
  expect(sizes).toEqual([100, 11]);
  expect(answered.indexOf('workload')).toBeLessThan(100);
});

it('where slices are sold once, those for one subscription share transactions, and others do not wait for it', async () => {
  const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 48 });
  const [one, another] = [await held(team, pool_id, 30), await held(team, pool_id, 1)];
  await fixture.settle();
  let asked: Promise<unknown>[] = [];
  const { sizes } = await behindLock(
    fixture,
    one.subscription_id,
    () => start(one),
    () => {
      asked = Array.from({ length: 39 }, (_, at) => toldBy(at % 2 === 0 ? start(one) : startPod(one)));
      return [...asked, start(another)];
    },
  );
  expect(sizes.toSorted((first, second) => first - second)).toEqual([1, 39]);
  const told = await Promise.all(asked);
  expect(told.filter((each) => each === 'pending')).toHaveLength(29);
  expect(told.filter((each) => each === 'insufficient_capacity')).toHaveLength(10);
  const leases = await fixture.query('SELECT FROM lease WHERE subscription_id = $1 AND workload_id IS NOT NULL', [
    one.subscription_id,
  ]);
  expect(leases).toHaveLength(30);
});

it('a pod that is ended while its start waits with others is stopped; one that asks twice has one workload; the others start', async () => {
  const { plug, all } = await crowd([[team, 4]]);
  const [ended, twice, third] = [newPod(), newPod(), newPod()];
  const commit = await elsewhere((runner) =>
    runner.query('INSERT INTO pod_end (pod_id, ended_start) VALUES ($1, 1)', [ended.pod_id]),
  );
  let answers: Promise<string>[] = [];
  const starting = behind(plug, () => {
    answers = [ended, twice, third, twice].map((pod) => toldBy(startPod(all[0]!, { pod })));
    return answers;
  });
  await untilLockWaits(fixture, { text: 'INSERT INTO pod_end' });
  await commit();
  expect((await starting).sizes).toEqual([3, 1]);
  expect(await Promise.all(answers)).toEqual(['stopped', 'pending', 'pending', 'pending']);
  expect(await rowsOf(all[0]!)).toHaveLength(2);
});

it('a team that is suspended, and a subscription that ends, while their requests wait with others are refused; the others start', async () => {
  const told = aTeam();
  await fixture.tell(teamChanged, told);
  const suspended = {
    team_id: told.team_id,
    workspace_id: told.workspaces[0]!.id,
    member: memberOf(told.team_id, 'member'),
  };
  const { plug, all } = await crowd([
    [suspended, 2],
    [other, 2],
    [team, 2],
  ]);
  let answers: Promise<string>[] = [];
  await behind(
    plug,
    () => (answers = [...all, ...all].map((one) => toldBy(start(one)))),
    async () => {
      await fixture.tell(teamChanged, { ...told, revision: 2, is_suspended: true });
      await fixture.call(subscriptions.unsubscribe, { subscription_id: all[1]!.subscription_id }, other.member);
    },
  );
  expect(await Promise.all(answers)).toEqual([
    'team_suspended',
    'conflict',
    'pending',
    'team_suspended',
    'conflict',
    'pending',
  ]);
});

it('one whose deadline passes while it waits is not started; those beside it are', async () => {
  const { plug, all } = await crowd([[team, 2]]);
  const { subscription_id } = all[0]!;
  let deadlineAtMs = 0;
  let answers: Promise<string>[] = [];
  const ask = () => {
    deadlineAtMs = Date.now() + 500;
    const late = { ...contextOf(team.member), deadlineAtMs };
    const [tooLate, inTime] = [
      fixture.get(WorkloadsService).start({ subscription_id, name: 'late' }, late),
      start(all[0]!),
    ];
    return (answers = [tooLate, inTime].map(toldBy));
  };
  await behind(plug, ask, async () => {
    while (Date.now() <= deadlineAtMs) await new Promise((resolve) => setTimeout(resolve, 10));
  });
  expect(await Promise.all(answers)).toEqual(['deadline_exceeded', 'pending']);
  expect(await rowsOf(all[0]!)).toHaveLength(1);
});

it('each call is remembered: a copy of any starts no second workload, and takes no other call with it', async () => {
  const { all } = await crowd([[team, 10]]);
  const nonces = Array.from({ length: 5 }, () => randomBytes(32).toString('base64url'));
  const deadlineAtMs = Date.now() + 60_000;
  const call = async (number: number) => {
    const asked = { subscription_id: all[0]!.subscription_id, name: `call-${number}` };
    const answer = await handleOnce({ nonce: nonces[number] ?? '', deadlineAtMs }, () =>
      fixture.get(WorkloadsService).start(asked, { ...contextOf(team.member), deadlineAtMs }),
    );
    return answer?.name;
  };
  expect(await Promise.all([0, 1, 2].map(call))).toEqual(['call-0', 'call-1', 'call-2']);
  expect(await Promise.all([1, 3, 2, 4].map(call))).toEqual([undefined, 'call-3', undefined, 'call-4']);
  expect(await rowsOf(all[0]!)).toHaveLength(5);
});
