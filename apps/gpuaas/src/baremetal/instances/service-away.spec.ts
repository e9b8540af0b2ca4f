import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import type { ToldTeam } from '../../gpuaas-fixture.js';
import { BaremetalFixture } from '../baremetal-fixture.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const hours = 3_600;

it('a host that was allocated before the service was away is provisioned when it is back', async () => {
  const model = `away-${newId().slice(-8)}`;
  await fixture.available('', { specs: { gpu_model: model, gpu_count: 8, cpu_cores: 128, memory_gb: 1024 } });
  const instance = await fixture.request(team, { specs: { gpu_model: model } });
  await fixture.reach(instance, 'reaching');
  await fixture.pass(hours);
  await fixture.settle();
  expect(await fixture.instance(team, instance)).toMatchObject({ status: 'Active', error: null });
});

it('a request is given no host after the day that it may wait, though nobody came to it before', async () => {
  const model = `late-${newId().slice(-8)}`;
  await fixture.available('', { specs: { gpu_model: model, gpu_count: 8, cpu_cores: 128, memory_gb: 1024 } });
  const instance = await fixture.request(team, { specs: { gpu_model: model } });
  await fixture.pass(24 * hours);
  await fixture.settle();
  expect((await fixture.instance(team, instance)).status).toBe('Failed');
});

it('a host that was registered before is checked then', async () => {
  const { node_id } = await fixture.register();
  await fixture.pass(301);
  await fixture.work();
  expect((await fixture.node(node_id)).status).toBe('Available');
});
