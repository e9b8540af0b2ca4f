import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { gpuHoldings, type TeamGpuHoldings } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { Rpc, systemContext } from '@atoll/rpc';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

const holdings = ({ team_id }: Pick<ToldTeam, 'team_id'>): Promise<TeamGpuHoldings> =>
  fixture.get(Rpc).call(gpuHoldings.ofTeam, { team_id }, systemContext('teams'));

it('counts what one team holds in each region, of all states in which something is held', async () => {
  const [team, other] = [await fixture.team(), await fixture.team()];
  const here = await fixture.pool({ mechanism: 'mps', replicas: 4 }, { count: 2 });
  const there = await fixture.pool({ mechanism: 'mps', replicas: 2, overcommit: 2 }, { count: 1 });
  const [wide, spare, ended] = [
    await fixture.subscribe(team, { pool_id: here.pool_id, vgpus: 5 }),
    await fixture.subscribe(team, { pool_id: here.pool_id, vgpus: 1 }),
    await fixture.subscribe(team, { pool_id: here.pool_id, vgpus: 1 }),
  ];
  const entitled = await fixture.subscribe(team, { pool_id: there.pool_id, vgpus: 3 });
  await fixture.subscribe(other, { pool_id: here.pool_id, vgpus: 1 });
  await fixture.settle();
  await fixture.unsubscribe(team, ended);
  await fixture.settle();
  await fixture.start(team, wide, 2);
  await fixture.start(team, wide, 1);
  await fixture.start(team, entitled, 1);
  await fixture.settle();
  await fixture.unsubscribe(team, spare);
  const { as_of, regions } = await holdings(team);
  expect(Math.abs(Date.parse(as_of) - Date.now())).toBeLessThan(60_000);
  expect(regions).toEqual([
    {
      region_id: expect.any(String),
      region_name: expect.any(String),
      vgpus: 6,
      vgpus_in_use: 3,
      gpus: 2,
      gpu_subscriptions: 2,
      gpu_workloads: 2,
      baremetal_instances: 0,
      baremetal_gpus: 0,
    },
    {
      region_id: expect.any(String),
      region_name: expect.any(String),
      vgpus: 3,
      vgpus_in_use: 1,
      gpus: 1,
      gpu_subscriptions: 1,
      gpu_workloads: 1,
      baremetal_instances: 0,
      baremetal_gpus: 0,
    },
  ]);
  expect((await holdings(other)).regions).toMatchObject([
    { vgpus: 1, vgpus_in_use: 0, gpus: 1, gpu_subscriptions: 1, gpu_workloads: 0 },
  ]);
});

it('names no region for a team that holds nothing, or is not known', async () => {
  for (const team of [await fixture.team(), { team_id: newId() }]) {
    expect(await holdings(team)).toEqual({ as_of: expect.stringMatching(/Z$/), regions: [] });
  }
});

it('is for services alone, not even for the operator', async () => {
  const { team_id, member } = await fixture.team();
  for (const caller of [member, { platformAdmin: true }]) {
    expect((await errorOf(fixture.call(gpuHoldings.ofTeam, { team_id }, caller))).code).toBe('forbidden');
  }
});
