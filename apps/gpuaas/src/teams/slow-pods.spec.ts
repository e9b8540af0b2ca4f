import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { podWorkloads, subscriptions } from '@atoll/contracts/gpuaas';
import { teamDeletionRequested } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { onOtherClock } from '@atoll/testing';
import { PodEnds } from '../subscriptions/pod-ends.js';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

const count = 5;
const context = () => systemContext('pods');

/** A team with pods on as many subscriptions, which is then deleted by force. */
async function ending(pool_id: string): Promise<{ team: ToldTeam; pods: string[] }> {
  const team = await fixture.team();
  const pods = Array.from({ length: count }, () => newId());
  const held = await Promise.all(pods.map(() => fixture.subscribe(team, { pool_id })));
  await fixture.settle();
  for (const [at, pod_id] of pods.entries()) {
    const subscription_id = held[at]?.subscription_id ?? '';
    await fixture.ask(podWorkloads.start, { pod_id, start: 1, subscription_id, vgpus: 1, pod_name: 'job' }, context());
  }
  await fixture.settle();
  await fixture.tell(teamDeletionRequested, { team_id: team.team_id, revision: 2, attempt_id: newId(), force: true });
  return { team, pods };
}

/** As if the subscriptions had been on their way for so long, while what they wait for had its time still before it. */
const passForSubscriptions = (seconds: number) =>
  fixture.query(
    `UPDATE subscription SET entered_at = entered_at - $1 * interval '1 second', due_at = due_at - $1 * interval '1 second',
       parked_until = parked_until - $1 * interval '1 second', deadline_at = deadline_at - $1 * interval '1 second'
     WHERE due_at IS NOT NULL OR parked_until IS NOT NULL`,
    [seconds],
  );
const statusesOf = async ({ team_id }: ToldTeam) =>
  (await fixture.call(subscriptions.list, { team_id, include_ended: 'true' })).data.map(({ status }) => status);
const statesOf = async (table: string, key: string, values: unknown[]) =>
  (
    await fixture.query<{ state: string }>(
      `SELECT DISTINCT state FROM ${table} WHERE ${key} = ANY ($1) ORDER BY state`,
      [values],
    )
  ).map(({ state }) => state);

it.each([
  ['before anybody looked at them', false],
  ['while they were looked at all the time', true],
])(
  'subscriptions whose pods stop after hours, %s, end whole, and no GPU goes out of service',
  async (_, areLookedAt) => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 48 });
    const { team, pods } = await ending(pool.pool_id);
    for (let hour = 0; hour < 3; hour += 1) {
      if (areLookedAt) await fixture.work();
      await passForSubscriptions(3_600);
    }
    await fixture.work();
    expect(new Set(await statusesOf(team))).toEqual(new Set(['unsubscribing']));
    for (const pod_id of pods) await fixture.ask(podWorkloads.end, { pod_id, start: 1 }, context());
    await fixture.settle();
    expect(await statusesOf(team)).toEqual(pods.map(() => 'unsubscribed'));
    expect(await statesOf('workload', 'team_id', [team.team_id])).toEqual(['stopped']);
    expect(await statesOf('gpu', 'gpu_id', pool.gpu_ids)).toEqual(['spatial']);
  },
);

const statesNow = ({ team_id }: ToldTeam) => statesOf('workload', 'team_id', [team_id]);

it('workloads wait for their pods for as long as the pods service ends others of their team, and 75 s more', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 48 });
  const { team, pods } = await ending(pool.pool_id);
  await fixture.work();
  for (const pod_id of pods.slice(1)) {
    await fixture.pass(120);
    await fixture.ask(podWorkloads.end, { pod_id, start: 1 }, context());
    await fixture.work();
    expect(await statesNow(team)).toContain('draining');
  }
  // As if nothing had been heard for so long.
  jest.spyOn(fixture.get(PodEnds), 'quietMs').mockReturnValue(75_001);
  await fixture.pass(120);
  await fixture.work();
  expect(await statesNow(team)).toEqual(['stopped']);
  jest.restoreAllMocks();
  await fixture.settle();
  expect(await statusesOf(team)).toEqual(pods.map(() => 'unsubscribed'));
});

it.each([-3_600_000, 3_600_000])(
  'workloads wait by the clock of the database, where that of the process is %i ms off',
  async (offMs) => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 48 });
    const { team } = await ending(pool.pool_id);
    jest.spyOn(fixture.get(PodEnds), 'quietMs').mockReturnValue(Infinity);
    await onOtherClock(offMs, () => fixture.work());
    expect(await statesNow(team)).toEqual(['draining']);
    await fixture.pass(120);
    await onOtherClock(offMs, () => fixture.work());
    expect(await statesNow(team)).toEqual(['stopped']);
    jest.restoreAllMocks();
  },
);

it('waits no longer for a pod than an hour, whatever is heard of others', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 48 });
  const { team, pods } = await ending(pool.pool_id);
  await fixture.work();
  await fixture.ask(podWorkloads.end, { pod_id: pods[0] ?? '', start: 1 }, context());
  await fixture.pass(3_601);
  await fixture.work();
  expect(await statesNow(team)).toEqual(['stopped']);
});
