import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { subscriptions, workloads } from '@atoll/contracts/gpuaas';
import { takeTurn, Transactions } from '@atoll/database';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

/** What a call is told that was let in before the suspension of its team was known here, and gives after it. */
async function toldAfter(call: () => Promise<unknown>): Promise<string> {
  const suspend = async (isSuspended: boolean, meanwhile: () => Promise<void>) => {
    await fixture.get(Transactions).run(async (manager) => {
      await takeTurn(manager, `team ${team.team_id}`);
      await manager.query('UPDATE team SET is_suspended = $2 WHERE id = $1', [team.team_id, isSuspended]);
      await meanwhile();
    });
  };
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`;
  let told: Promise<string> | undefined;
  let hasAnswered = false;
  await suspend(true, async () => {
    told = errorOf(call())
      .then(({ code }) => code)
      .catch(() => 'taken')
      .finally(() => (hasAnswered = true));
    while (!hasAnswered && (await fixture.query(waiting)).length === 0) await delay(5);
  });
  const code = await told;
  await suspend(false, () => Promise.resolve());
  return code ?? '';
}

it('nothing is given to a team whose suspension is heard of while the call waits', async () => {
  const { member } = team;
  const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 6 });
  const { subscription_id } = await fixture.subscribe(team, { pool_id, vgpus: 2 });
  await fixture.settle();
  const calls: Record<string, () => Promise<unknown>> = {
    'a subscription': () => fixture.subscribe(team, { pool_id, vgpus: 1 }),
    'more vGPUs': () => fixture.call(subscriptions.resize, { subscription_id, vgpus: 3 }, member),
    'a workload': () => fixture.call(workloads.start, { subscription_id, name: 'job' }, member),
  };
  for (const [what, call] of Object.entries(calls)) expect([what, await toldAfter(call)]).toEqual([what, 'team_suspended']);
  expect((await fixture.call(subscriptions.resize, { subscription_id, vgpus: 3 }, member)).subscription_id).toBe(subscription_id);
});
