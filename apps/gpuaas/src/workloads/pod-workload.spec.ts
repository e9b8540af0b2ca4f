import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { nodes, podWorkloads, subscriptions, type PodStart } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { statementsOf } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

const context = () => systemContext('pods');
let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

async function subscription(vgpus: number): Promise<string> {
  const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 4 });
  const { subscription_id } = await fixture.subscribe(team, { pool_id, vgpus });
  await fixture.settle();
  return subscription_id;
}
const newPod = (): PodStart => ({ pod_id: newId(), start: 1 });
const start = (pod: PodStart, subscription_id: string, vgpus: number) =>
  fixture.ask(podWorkloads.start, { ...pod, subscription_id, vgpus, pod_name: 'job' }, context());
const end = (pod: PodStart) => fixture.ask(podWorkloads.end, pod, context());
const refusal = async (subscription_id: string, vgpus: number) =>
  (await fixture.ask(podWorkloads.check, { subscription_id, vgpus }, context())).refusal?.message ?? null;

it('of a pod waits for vGPUs that another one of its subscription gives back, and is refused at once where those would not do', async () => {
  const held = await subscription(3);
  const [first, second, other] = [newPod(), newPod(), newPod()];
  await start(first, held, 2);
  await start(other, held, 1);
  await fixture.settle();
  expect(await refusal(held, 2)).toBe('The subscription has 3 vGPUs and 3 of them are in use. Available: 0.');
  await end(first);
  expect([await refusal(held, 2), await refusal(held, 3)]).toEqual([
    null,
    'The subscription has 3 vGPUs and 1 of them are in use. Available: 2.',
  ]);
  const waits = {
    workload_id: null,
    status: 'waiting',
    reason: 'Waiting for vGPUs of its subscription to be released.',
  };
  expect(await start(second, held, 2)).toMatchObject(waits);
  await fixture.settle();
  await start(second, held, 2);
  await fixture.settle();
  const { status, slices } = await start(second, held, 2);
  expect([status, slices.length]).toEqual(['running', 2]);
});

it('of a pod gets no vGPUs that a growing subscription is still adding to a node, and the refusal does not count them', async () => {
  const first = await fixture.inventory();
  const { node_id, gpus } = await fixture.call(nodes.register, {
    gpuaas_id: first.gpuaas_id,
    node_name: `node-${newId()}`,
    gpus: [{ board: 'A100-80GB', count: 1 }],
  });
  await fixture.call(nodes.initialise, { node_id });
  await fixture.settle();
  const gpuIds = [...first.gpu_ids, ...gpus.map(({ gpu_id }) => gpu_id)];
  const { pool_id } = await fixture.poolOn(first, gpuIds, { mechanism: 'mps', replicas: 3 });
  await fixture.settle();
  // Three on one node, and one on the other, which the growth is to fill.
  const { subscription_id } = await fixture.subscribe(team, { pool_id, vgpus: 4 });
  await fixture.settle();
  await start(newPod(), subscription_id, 2);
  await fixture.call(subscriptions.resize, { subscription_id, vgpus: 6 }, team.member);
  const scattered = 'No node holds 2 free vGPUs of the subscription, and a pod must fit on one node. Available: 1.';
  expect(await refusal(subscription_id, 2)).toBe(scattered);
  expect((await errorOf(start(newPod(), subscription_id, 2))).message).toBe(scattered);
  await fixture.settle();
  expect((await start(newPod(), subscription_id, 2)).slices).toHaveLength(2);
});

it('is checked for another team by the same statements as of a subscription that does not exist', async () => {
  const foreign = await subscription(1);
  const { team_id } = await fixture.team();
  const check = (subscription_id: string) =>
    statementsOf(() => errorOf(fixture.ask(podWorkloads.check, { team_id, subscription_id, vgpus: 1 }, context())));
  const textsOf = async (id: string) => (await check(id)).map(({ text }) => text);
  expect(await textsOf(foreign)).toEqual(await textsOf('999999999'));
});

it('is told of vGPUs that workloads use which are no pod’s, until they give them back', async () => {
  const subscription_id = await subscription(4);
  const told = async () => {
    const { vgpus, vgpus_beside_pods } = await fixture.ask(
      podWorkloads.check,
      { subscription_id, vgpus: 1 },
      context(),
    );
    return [vgpus, vgpus_beside_pods];
  };
  await start(newPod(), subscription_id, 1);
  const direct = await fixture.start(team, { subscription_id }, 2);
  expect(await told()).toEqual([4, 2]);
  await fixture.stopWorkload(team, direct);
  expect(await told()).toEqual([4, 0]);
  await fixture.settle();
});

it('is ended without regard to those of the pod that have ended, and an end that is repeated changes nothing', async () => {
  const held = await subscription(1);
  const first = newPod();
  const second = { ...first, start: 2 };
  await start(first, held, 1);
  await end(first);
  await fixture.settle();
  await start(second, held, 1);
  await fixture.settle();
  await fixture.get(DataSource).transaction(async (manager) => {
    await manager.query('SELECT FROM workload WHERE pod_id = $1 AND pod_start = 1 FOR UPDATE', [first.pod_id]);
    await end(first);
    expect((await start(second, held, 1)).status).toBe('running');
    await end(second);
  });
  await fixture.settle();
  for (const pod of [first, second]) {
    await end(pod);
    expect((await start(pod, held, 1)).status).toBe('stopped');
  }
});

it('is ended by the end of a later start of its pod too', async () => {
  const held = await subscription(1);
  const pod = newPod();
  await start(pod, held, 1);
  await end({ ...pod, start: 2 });
  await fixture.settle();
  expect((await start(pod, held, 1)).status).toBe('stopped');
  expect((await start(newPod(), held, 1)).status).toBe('pending');
});
