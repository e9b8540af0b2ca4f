import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { podUsages, podWorkloads, subscriptions } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture?.stop());

/**
 * What is said of how a pod uses its slice, in each of the three answers, where the deployment has no source of
 * metrics.
 */
async function usesOn(driver: 'simulated' | 'docker') {
  const { pool_id, gpuaas_id } = await fixture.pool();
  await fixture.query('UPDATE cluster SET driver = $2 WHERE gpuaas_id = $1', [gpuaas_id, driver]);
  const { subscription_id } = await fixture.subscribe(team, { pool_id });
  await fixture.settle();
  const pod = { pod_id: newId(), start: 1 };
  await fixture.ask(podWorkloads.start, { ...pod, subscription_id, vgpus: 1, pod_name: 'job' }, systemContext('pods'));
  await fixture.settle();
  // As if all this was a day ago.
  const back = `- interval '1 day'`;
  await fixture.query(`UPDATE subscription SET active_since = active_since ${back} WHERE subscription_id = $1`, [
    subscription_id,
  ]);
  await fixture.query(`UPDATE held_slice SET held_from = held_from ${back} WHERE subscription_id = $1`, [
    subscription_id,
  ]);
  const usage = await fixture.ask(
    podUsages.read,
    { seconds: 120, pods: [{ ...pod, is_idle: true }] },
    systemContext('pods'),
  );
  const { points } = await fixture.call(subscriptions.utilization, { subscription_id }, team.member);
  return {
    pod: usage.data.map(({ kind, peak_percent }) => [kind, peak_percent]),
    listed: (await fixture.subscription(team, { subscription_id })).metrics_status,
    course: points.map(({ gpu_utilization }) => gpu_utilization),
  };
}

it('figures are made up for the pods of simulated clusters', async () => {
  const { course, ...uses } = await usesOn('simulated');
  expect(uses).toEqual({ pod: [['measured', 0]], listed: 'ok' });
  expect(course).not.toContain(null);
});

it('no figure is made up for the pods of a container engine', async () => {
  const { course, ...uses } = await usesOn('docker');
  expect(uses).toEqual({ pod: [['no_data', null]], listed: 'no_data' });
  expect(new Set(course)).toEqual(new Set([null]));
});
