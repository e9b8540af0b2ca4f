import { expect, it } from '@jest/globals';
import { timeoutFactor } from '@atoll/testing';
import { adminKey, call, fresh, succeed, until, type Refusal } from './client.js';
import { createNode, createTenant } from './gpu-inventory.js';

interface VmView {
  instance_id: string;
  status: string;
  restarts: number;
  reason: string | null;
}

interface Bill {
  total_cost: string;
  intervals: { items: { kind: string; sku: string; cost: string }[] }[];
}

it('a VM starts again when its guest stops by itself, stays stopped when a user stops it, and costs what it ran', async () => {
  const tenant = await createTenant('Virtual', ['team_owner', 'member', 'viewer', 'billing_viewer']);
  const { regionId } = await createNode();
  const flavour = fresh('small')
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]/g, '');
  const size = { name: flavour, vcpus: 4, memory_gb: 16 };
  expect((await call('POST', '/vm/flavour', { key: tenant.key, body: size })).status).toBe(403);
  await succeed('POST', '/vm/flavour', { key: adminKey, body: size });
  const flavours = await succeed<{ data: { name: string }[] }>('GET', '/vm/flavour?limit=100', {
    key: tenant.keys.viewer,
  });
  expect(flavours.data.map(({ name }) => name)).toContain(flavour);
  const sku = `vm.${flavour}`;
  const price = {
    sku,
    unit: 'VM',
    unit_price: '3600',
    valid_from: '2026-01-01T00:00:00Z',
    team_id: tenant.teamId,
    force: true,
  };
  await succeed('POST', '/price', { key: adminKey, body: price });
  const create = (body: object, key = tenant.key) =>
    call<VmView & Refusal>('POST', '/vm', {
      key,
      body: { team_id: tenant.teamId, region_id: regionId, name: 'head-node', flavour, image: 'debian:13', ...body },
    });
  const read = ({ instance_id }: VmView, key = tenant.key) =>
    call<VmView & Refusal>('GET', `/vm/${instance_id}`, { key });
  const comesTo = async (vm: VmView, status: string) =>
    (
      await until(
        () => read(vm),
        ({ body }) => body.status === status,
        30_000,
      )
    ).body;

  const { status, body: crashing } = await create({ name: 'crash', auto_restart: true });
  expect([status, crashing.status]).toEqual([202, 'pending']);
  await until(
    () => read(crashing),
    ({ body }) => body.restarts >= 1,
    30_000,
  );
  expect((await call('POST', `/vm/${crashing.instance_id}/stop`, { key: tenant.key })).status).toBe(202);
  const { restarts } = await comesTo(crashing, 'stopped');

  const askedAtMs = Date.now();
  const { body: vm } = await create({});
  await comesTo(vm, 'running');
  const instances = await succeed<{ data: object[] }>('GET', `/instance?team_id=${tenant.teamId}`, {
    key: tenant.keys.viewer,
  });
  expect(instances.data).toContainEqual(
    expect.objectContaining({ id: vm.instance_id, kind: 'vm', status: 'running', auto_restart: false }),
  );
  const compatible = () =>
    succeed<{ data: object[] }>('GET', `/gpuaas/compatible-instances/${tenant.teamId}`, { key: tenant.keys.viewer });
  const { data } = await until(compatible, (found) => found.data.length === 1);
  expect(data).toEqual([{ id: vm.instance_id, name: 'head-node', kind: 'vm', status: 'running' }]);
  const overview = await succeed<{ total: object }>('GET', `/team/${tenant.teamId}/resource-overview`, {
    key: tenant.key,
  });
  expect(overview.total).toMatchObject({ vms: 2, vms_in_use: 1 });

  const stranger = await createTenant('Strangers');
  const [foreign, unknown] = [
    await read(vm, stranger.key),
    await read({ ...vm, instance_id: '01890000-0000-7000-8000-000000000000' }, stranger.key),
  ];
  expect([foreign.status, foreign.body.detail]).toEqual([404, unknown.body.detail]);
  expect((await call('POST', `/vm/${vm.instance_id}/stop`, { key: tenant.keys.viewer })).status).toBe(403);

  expect((await call('DELETE', `/vm/${vm.instance_id}`, { key: tenant.key })).status).toBe(202);
  const ranAtMostMs = Date.now() - askedAtMs;
  await until(
    () => read(vm),
    (found) => found.status === 404,
  );
  expect((await read(crashing)).body.restarts).toBe(restarts);
  const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
  const path = `/team-billing/${tenant.teamId}/${day(-1)}T00:00:00/${day(2)}T00:00:00/monthly/utc`;
  let before = '';
  const bill = await until(
    () => succeed<Bill>('GET', path, { key: tenant.keys.billing_viewer }),
    ({ total_cost }) => {
      const isSame = Number(total_cost) > 0 && total_cost === before;
      before = total_cost;
      return isSame;
    },
  );
  const items = bill.intervals.flatMap((interval) => interval.items);
  expect(items.map(({ kind, sku: billed }) => [kind, billed])).toEqual([['vm', sku]]);
  // 1 for each second and VM, exact to the millisecond; the end of a run is noticed within seconds.
  expect(bill.total_cost).toMatch(/^\d+(?:\.\d{1,3})?$/);
  expect(Number(bill.total_cost)).toBeGreaterThan(0);
  expect(Number(bill.total_cost)).toBeLessThan(ranAtMostMs / 1_000 + (restarts + 1) * 8 * timeoutFactor);
});
