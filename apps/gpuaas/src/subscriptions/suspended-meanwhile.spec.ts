import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { subscriptions, workloads } from '@atoll/contracts/gpuaas';
import { codeWhenSuspendedMeanwhile } from '@atoll/testing';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

/** What a call is told that was let in before the suspension of its team was known here, and gives after it. */
const toldAfter = (call: () => Promise<unknown>) => codeWhenSuspendedMeanwhile(fixture, team.team_id, call);

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
  for (const [what, call] of Object.entries(calls))
    expect([what, await toldAfter(call)]).toEqual([what, 'team_suspended']);
  expect((await fixture.call(subscriptions.resize, { subscription_id, vgpus: 3 }, member)).subscription_id).toBe(
    subscription_id,
  );
});
