import { beforeAll, describe, expect, it } from '@jest/globals';
import { adminKey, call, endTeam, succeed, until, type Refusal } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

interface VolumeView {
  volume_id: string;
  status: string;
  size_in_gb: number;
  used_size_in_gb: number | null;
}

interface StorageBill {
  total_cost: string;
  volumes: {
    volume_id: string;
    name: string;
    region_id: string;
    used_size_in_gb: number;
    gb_hours: number;
    total_cost: string;
  }[];
}

let tenant: Awaited<ReturnType<typeof createTenant>>;
let node: Awaited<ReturnType<typeof createNode>>;
let subscriptionId: string;

beforeAll(async () => {
  tenant = await createTenant('Hoarders', ['team_owner', 'member', 'viewer', 'billing_viewer']);
  node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
  const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 });
  subscriptionId = (await tenant.subscribe({ pool_id: poolId, vgpus: 2 })).body.subscription_id;
});

const create = (body: object = {}, key = tenant.key) =>
  call<VolumeView & Refusal>('POST', '/shared-volumes', {
    key,
    body: { team_id: tenant.teamId, region_id: node.regionId, name: 'datasets', size_in_gb: 10, ...body },
  });
const read = (id: string, key = tenant.key) => call<VolumeView & Refusal>('GET', `/shared-volumes/${id}`, { key });
const isActive = ({ body }: { body: VolumeView }) => body.status === 'active';
const remove = (id: string, key = tenant.key) => call<VolumeView & Refusal>('DELETE', `/shared-volumes/${id}`, { key });

describe('a shared volume', () => {
  it('is created, mounted in a pod, grown, kept while it is mounted, deleted, and billed to the cent for what it held', async () => {
    const price = {
      sku: 'storage.shared',
      unit: 'GB',
      unit_price: '3600',
      valid_from: '2026-01-01T00:00:00Z',
      team_id: tenant.teamId,
    };
    await succeed('POST', '/price', { key: adminKey, body: { ...price, force: true } });
    const askedAtMs = Date.now();
    const { status, body: made } = await create();
    expect([status, made]).toMatchObject([202, { status: 'pending', size_in_gb: 10 }]);
    const path = `/shared-volumes/${made.volume_id}`;
    await until(() => read(made.volume_id), isActive);
    const activeAtMs = Date.now();
    const mounted = { name: 'job', image: 'python:3.13', volumes: [{ volume_id: made.volume_id, path: '/data' }] };
    const body = { team_id: tenant.teamId, subscription_id: subscriptionId, ...mounted };
    const pod = await succeed<{ pod_name: string }>('POST', '/pods', { key: tenant.key, body });
    await until(
      () => succeed<{ status: string }>('GET', `/pods/${pod.pod_name}`, { key: tenant.key }),
      (found) => found.status === 'running',
    );
    const kept = await remove(made.volume_id);
    expect([kept.status, kept.body.detail]).toEqual([
      409,
      `The volume is mounted by pod ${pod.pod_name}: unmount it there first.`,
    ]);
    expect((await call('PUT', path, { key: tenant.key, body: { size_in_gb: 9 } })).status).toBe(400);
    expect((await call('PUT', path, { key: tenant.key, body: { size_in_gb: 20 } })).status).toBe(200);
    await until(
      () => read(made.volume_id),
      (found) => isActive(found) && found.body.size_in_gb === 20,
    );
    const overview = await succeed<{ total: object }>('GET', `/team/${tenant.teamId}/resource-overview`, {
      key: tenant.key,
    });
    expect(overview.total).toMatchObject({ shared_volumes: 1, storage_in_gb: 20 });
    await call('DELETE', `/pods/${pod.pod_name}`, { key: tenant.key });
    const deletingAtMs = Date.now();
    expect((await remove(made.volume_id)).status).toBe(202);
    const deletedAtMs = Date.now();
    await until(
      () => read(made.volume_id),
      (found) => found.status === 404,
    );
    const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
    const range = `${day(-1)}T00:00:00/${day(2)}T00:00:00`;
    const report = (region: string) =>
      succeed<StorageBill>('GET', `/team-billing/shared-storage/${tenant.teamId}/${range}/monthly/${region}/utc`, {
        key: tenant.keys.billing_viewer,
      });
    // What runs costs more with each reading; the end of the volume is in the report once two of them agree.
    let before: StorageBill | undefined;
    const bill = await until(
      () => report('all'),
      (found) => {
        const isSame = Number(found.total_cost) > 0 && found.total_cost === before?.total_cost;
        before = found;
        return isSame;
      },
    );
    expect(bill.volumes).toMatchObject([{ volume_id: made.volume_id, name: 'datasets', region_id: node.regionId }]);
    const [{ gb_hours = 0, total_cost = '' } = {}] = bill.volumes;
    // `gb_hours` has nine decimals; the cost is exact, 0.01 for each GB and each 10 ms.
    expect(Number(total_cost)).toBeCloseTo(gb_hours * 3_600, 4);
    expect(total_cost).toMatch(/^\d+(?:\.\d\d?)?$/);
    expect(bill.total_cost).toBe(total_cost);
    // 10 GB from when it was active, 20 GB at the most: 10 and 20 a second.
    expect(Number(total_cost)).toBeGreaterThanOrEqual(((deletingAtMs - activeAtMs) / 1_000) * 10);
    expect(Number(total_cost)).toBeLessThanOrEqual(((deletedAtMs - askedAtMs) / 1_000) * 20);
    expect((await report(node.regionId)).total_cost).toBe(total_cost);
  });

  it('is for its team: read by a viewer, changed by a member, and not found by anybody else', async () => {
    const { body: volume } = await create({ name: 'private' });
    expect((await read(volume.volume_id, tenant.keys.viewer)).status).toBe(200);
    expect((await remove(volume.volume_id, tenant.keys.viewer)).status).toBe(403);
    expect((await create({ name: 'other' }, tenant.keys.billing_viewer)).status).toBe(403);
    const stranger = await createTenant('Strangers');
    const [foreign, unknown] = [await remove(volume.volume_id, stranger.key), await remove('999999', stranger.key)];
    expect([foreign.status, foreign.body.detail]).toEqual([404, unknown.body.detail]);
    expect((await create({ region_id: '999999' })).body.detail).toBe('No such region.');
    expect((await create({ name: 'private' })).status).toBe(409);
    const keepers = await createTenant('Keepers', ['team_owner', 'member']);
    const { body: theirs } = await create({ team_id: keepers.teamId }, keepers.key);
    const key = keepers.keys.team_owner ?? '';
    expect((await call('DELETE', `/team/${keepers.teamId}`, { key })).body.detail).toBe(
      'The team still holds something: 1 shared volume.',
    );
    await endTeam(keepers.teamId, key);
    expect((await read(theirs.volume_id, adminKey)).status).toBe(404);
    expect((await remove(volume.volume_id)).status).toBe(202);
  });
});
