import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { subscriptions } from '@atoll/contracts/gpuaas';
import { allStatementsDuring, mostRowsRead, onOtherClock } from '@atoll/testing';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';
import { endingTeam, endOf, workloadStates } from './slow-pods-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

const ending = (pool_id: string) => endingTeam(fixture, pool_id);

/** As if the subscriptions had been on their way for so long, while what they wait for had its time still before it. */
const passForSubscriptions = (seconds: number) =>
  fixture.query(
    `UPDATE subscription SET entered_at = entered_at - $1 * interval '1 second', due_at = due_at - $1 * interval '1 second',
       parked_until = parked_until - $1 * interval '1 second', deadline_at = deadline_at - $1 * interval '1 second'
     WHERE due_at IS NOT NULL OR parked_until IS NOT NULL`,
    [seconds],
  );
const statesNow = (team: ToldTeam) => workloadStates(fixture, team);
const statusesOf = async ({ team_id }: ToldTeam) =>
  (await fixture.call(subscriptions.list, { team_id, include_ended: 'true' })).data.map(({ status }) => status);

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
    for (const pod_id of pods) await endOf(fixture, pod_id);
    await fixture.settle();
    expect(await statusesOf(team)).toEqual(pods.map(() => 'unsubscribed'));
    expect(await statesNow(team)).toEqual(['stopped']);
    const gpus = 'SELECT DISTINCT state FROM gpu WHERE gpu_id = ANY ($1)';
    expect(await fixture.query(gpus, [pool.gpu_ids])).toEqual([{ state: 'spatial' }]);
  },
);

it('the end of a pod is noted of this pod alone', async () => {
  const { team, pods } = await ending((await fixture.pool({ mechanism: 'mps', replicas: 48 })).pool_id);
  await endOf(fixture, pods[0]);
  const noted = await fixture.query(
    'SELECT pod_id, team_id FROM pod_end WHERE pod_id = ANY ($1) AND ended_at IS NOT NULL',
    [pods],
  );
  expect(noted).toEqual([{ pod_id: pods[0], team_id: team.team_id }]);
});

it('workloads wait for their pods for as long as the pods service ends others of their team, and 75 s more', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 48 });
  const { team, pods } = await ending(pool.pool_id);
  await fixture.work();
  for (const pod_id of pods.slice(1)) {
    await fixture.pass(120);
    await endOf(fixture, pod_id);
    await fixture.work();
    expect(await statesNow(team)).toContain('draining');
  }
  await fixture.pass(76);
  await fixture.work();
  expect(await statesNow(team)).toEqual(['stopped']);
  await fixture.settle();
  expect(await statusesOf(team)).toEqual(pods.map(() => 'unsubscribed'));
});

it('ends of other teams, and those of long ago, are not read by workloads that wait', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 48 });
  const { team } = await ending(pool.pool_id);
  await fixture.query(
    `INSERT INTO pod_end (pod_id, ended_start, team_id, ended_at)
     SELECT gen_random_uuid(), 1, CASE WHEN n % 2 = 0 THEN $1::uuid ELSE gen_random_uuid() END, now() - n * interval '1 minute'
     FROM generate_series(1000, 6000) n`,
    [team.team_id],
  );
  await fixture.query('VACUUM ANALYZE pod_end');
  const sent = await allStatementsDuring(() => fixture.work());
  const looks = sent.filter(({ text }) => text.includes('max(ended_at)'));
  expect(looks.length).toBeGreaterThan(0);
  for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(10);
});

it.each([-3_600_000, 3_600_000])(
  'workloads wait by the clock of the database, where that of the process is %i ms off',
  async (offMs) => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 48 });
    const { team } = await ending(pool.pool_id);
    await onOtherClock(offMs, () => fixture.work());
    expect(await statesNow(team)).toEqual(['draining']);
    await fixture.pass(120);
    await onOtherClock(offMs, () => fixture.work());
    expect(await statesNow(team)).toEqual(['stopped']);
  },
);

it('waits no longer for a pod than an hour, whatever is heard of others', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 48 });
  const { team, pods } = await ending(pool.pool_id);
  await fixture.work();
  await fixture.pass(3_601);
  await endOf(fixture, pods[0]);
  await fixture.work();
  expect(await statesNow(team)).toEqual(['stopped']);
});
