import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { baremetalChanged } from '@atoll/contracts/gpuaas';
import { podBatches, pods, vms, type FindInstances } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { statementsOf } from '@atoll/testing';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
let other: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  [team, other] = [await fixture.team('member', 100), await fixture.team('viewer')];
});
afterAll(() => fixture.stop());

const find = (asked: Partial<FindInstances>, by?: ToldTeam['member']) =>
  fixture.call(podBatches.instances, { page: 0, limit: 10, ...asked }, by);

it('listings read neither commands nor environments of pods, however long those are', async () => {
  const own = await fixture.team();
  const long = 'x'.repeat(4_000);
  const { pod_name } = await fixture.running(own, { command: [long, long], env: { ONE: long, OTHER: long } });
  const { team_id, member } = own;
  for (const list of [() => fixture.call(pods.list, { team_id }, member), () => find({ team_id }, member)]) {
    const sent = (await statementsOf(list)).filter(({ text }) => text.includes('FROM pod'));
    expect(sent).not.toEqual([]);
    for (const { text, values } of sent)
      expect(JSON.stringify(await fixture.query(text, values)).length).toBeLessThan(5_000);
  }
  const shown = await fixture.call(pods.get, { pod_name }, member);
  expect((await fixture.call(pods.list, { team_id }, member)).data).toEqual([shown]);
  expect((await find({ team_id }, member)).data.map(({ pod }) => pod)).toEqual([shown]);
});

describe('instances', () => {
  it('are pods, VMs and bare-metal hosts that have not ended, with what a pod or VM has, counted by status', async () => {
    const [gone, pod] = [await fixture.create(team), await fixture.create(team, { name: 'kept', vgpus: 2 })];
    await fixture.call(pods.delete, { pod_name: gone.pod_name }, team.member);
    await fixture.untilDeleted(gone);
    await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16.5 });
    const [vm, ended] = [await fixture.createVm(team), await fixture.createVm(team, { name: 'ended' })];
    await fixture.call(vms.delete, { instance_id: ended.instance_id }, team.member);
    await fixture.untilVmDeleted(ended);
    const host = {
      team_id: team.team_id,
      workspace_id: team.workspace_id,
      name: 'metal',
      region_id: null,
      revision: 1,
    };
    const at = '2026-01-01T00:00:00.000Z';
    await fixture.tell(baremetalChanged, { ...host, instance_id: newId(), status: 'Requested', created_at: at });
    for (const status of ['Failed', 'Released', 'Cancelled'] as const)
      await fixture.tell(baremetalChanged, { ...host, instance_id: newId(), status, created_at: at });
    const { data, pagination, status_counts } = await find({ team_id: team.team_id }, team.member);
    expect(data).toMatchObject([
      { kind: 'baremetal', status: 'Requested', pod: null, vm: null, exposed_count: 0 },
      {
        id: pod.pod_id,
        kind: 'pod',
        name: pod.pod_name,
        pod: { name: 'kept', vgpus: 2, subscription_id: pod.subscription_id },
        vm: null,
      },
      {
        id: vm.instance_id,
        kind: 'vm',
        name: 'head-node',
        pod: null,
        vm: { flavour: 'small', vcpus: 4, memory_gb: 16.5 },
        exposed_count: 0,
      },
    ]);
    expect(pagination).toEqual({ page: 0, limit: 10, total: 3 });
    expect(status_counts.reduce((sum, { count }) => sum + count, 0)).toBe(3);
    const last = await find({ team_id: team.team_id, page: 99, limit: 1 }, team.member);
    expect([last.pagination.page, last.data.map(({ id }) => id)]).toEqual([2, [vm.instance_id]]);
    for (const instance_id of [pod.pod_id, vm.instance_id])
      expect((await find({ instance_id }, team.member)).data).toHaveLength(1);
  });

  it('of all teams are for the operator, and another team’s are not found', async () => {
    const vm = await fixture.createVm(team, { name: 'foreign' });
    const [pod, theirs] = [await fixture.create(team), await fixture.create(await fixture.team('member', 101))];
    const everywhere = (await find({ limit: 1000 })).data.map(({ id }) => id);
    expect(everywhere).toEqual(expect.arrayContaining([pod.pod_id, theirs.pod_id]));
    const codeOf = async (asked: Partial<FindInstances>) => (await errorOf(find(asked, other.member))).code;
    expect(await codeOf({})).toBe('forbidden');
    expect(await codeOf({ team_id: team.team_id })).toBe('not_found');
    expect(await codeOf({ instance_id: pod.pod_id })).toBe('not_found');
    expect(await codeOf({ instance_id: vm.instance_id })).toBe('not_found');
    expect(await codeOf({ instance_id: newId() })).toBe('not_found');
    expect(await codeOf({ team_id: other.team_id, instance_id: pod.pod_id })).toBe('not_found');
  });
});
