import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { GpuaasFixture } from '../gpuaas-fixture.js';
import { endingTeam, endOf, workloadStates } from './slow-pods-fixture.js';

let fixture: GpuaasFixture;
let replica: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  replica = await GpuaasFixture.start({ replicaOf: fixture });
  // Both have run for a day, by the clock of the process.
  const now = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => now() + 86_400_000);
});
afterAll(async () => {
  await replica?.stop();
  await fixture?.stop();
  jest.restoreAllMocks();
});

async function draining() {
  const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 48 });
  const { team, pods } = await endingTeam(fixture, pool_id);
  await fixture.work();
  return { states: () => workloadStates(fixture, team), pods };
}

it('workloads wait for 75 s after an end that another replica heard, as after one that this replica heard', async () => {
  const { states, pods } = await draining();
  await fixture.pass(120);
  await endOf(fixture, pods[0]);
  await replica.work();
  expect(await states()).toEqual(['draining', 'stopped']);
  await fixture.pass(76);
  await replica.work();
  expect(await states()).toEqual(['stopped']);
});

it('workloads wait for 75 s after the last start of a replica: before, none may have been there to hear of ends', async () => {
  const { states } = await draining();
  await fixture.pass(600);
  const started = await GpuaasFixture.start({ replicaOf: fixture });
  for (const each of [started, fixture]) {
    await each.work();
    expect(await states()).toEqual(['draining']);
  }
  await fixture.pass(76);
  await fixture.work();
  expect(await states()).toEqual(['stopped']);
  await started.stop();
});
