import { connect } from 'node:net';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { adminKey, call, succeed, until, type Refusal } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

interface PodView {
  pod_id: string;
  pod_name: string;
  status: string;
  reason: string | null;
  restarts: number;
}

interface ServiceView {
  service_id: string;
  external_port: number;
  url: string;
  status: string;
}

let tenant: Awaited<ReturnType<typeof createTenant>>;
let subscriptionId: string;

beforeAll(async () => {
  tenant = await createTenant('Podders', ['team_owner', 'member', 'viewer', 'billing_viewer']);
  const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
  const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 });
  subscriptionId = (await tenant.subscribe({ pool_id: poolId, vgpus: 2 })).body.subscription_id;
});

const create = (body: object = {}) =>
  call<PodView & Refusal>('POST', '/pods', {
    key: tenant.key,
    body: { team_id: tenant.teamId, subscription_id: subscriptionId, name: 'job', image: 'python:3.13', ...body },
  });
const read = (name: string, key = tenant.key) => call<PodView & Refusal>('GET', `/pods/${name}`, { key });
const act = (pod_name: string, action: string) =>
  call<PodView & Refusal>('POST', '/pods/action', { key: tenant.key, body: { pod_name, action } });
const comesTo = async (name: string, status: string) =>
  (
    await until(
      () => read(name),
      ({ body }) => body.status === status,
    )
  ).body;
const workloads = async () =>
  (
    await succeed<{ data: { workload_id: string; name: string; status: string }[] }>(
      'GET',
      `/gpuaas/workload?team_id=${tenant.teamId}`,
      {
        key: tenant.key,
      },
    )
  ).data;

describe('a pod', () => {
  it('waits for its subscription, runs as its workload, which only the pod ends, and is billed where pods have a price', async () => {
    const price = {
      sku: 'pod',
      unit: 'pod',
      unit_price: '3600',
      valid_from: '2026-01-01T00:00:00Z',
      team_id: tenant.teamId,
    };
    await succeed('POST', '/price', { key: adminKey, body: { ...price, force: true } });
    const { status, body: pod } = await create({ env: { TOKEN: 'secret' } });
    expect([status, pod.status]).toEqual([202, 'pending']);
    await comesTo(pod.pod_name, 'running');
    const [workload] = await workloads();
    expect(workload).toMatchObject({ name: pod.pod_name, status: 'running' });
    const stopped = await tenant.stop(workload?.workload_id ?? '');
    expect([stopped.status, stopped.body.detail]).toEqual([
      409,
      `The workload belongs to the pod ${pod.pod_name}. Stop the pod instead.`,
    ]);
    expect((await create({ vgpus: 2 })).status).toBe(422);
    expect((await act(pod.pod_name, 'stop')).status).toBe(202);
    await comesTo(pod.pod_name, 'stopped');
    await until(workloads, (found) => found.length === 0);
    await act(pod.pod_name, 'start');
    await comesTo(pod.pod_name, 'running');
    const deleted = await call('DELETE', `/pods/${pod.pod_name}`, { key: tenant.key });
    expect(deleted.status).toBe(202);
    await until(
      () => read(pod.pod_name),
      (found) => found.status === 404,
    );
    // That ends a step later, and is none of those that the next story counts.
    await until(workloads, (found) => found.length === 0);
    const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
    const path = `/team-billing/${tenant.teamId}/${day(-1)}T00:00:00/${day(2)}T00:00:00/daily/utc`;
    const items = () =>
      succeed<{ intervals: { items: { sku: string; cost: string }[] }[] }>('GET', path, {
        key: tenant.keys.billing_viewer,
      }).then(({ intervals }) => intervals.flatMap((interval) => interval.items).filter(({ sku }) => sku === 'pod'));
    expect(Number((await until(items, ([item]) => Number(item?.cost) > 0))[0]?.cost)).toBeGreaterThan(0);
  });

  it('is reached by the url of a service that it exposes, until that is updated, and deleted', async () => {
    const { body: pod } = await create({ name: 'web' });
    await comesTo(pod.pod_name, 'running');
    const body = { pod_name: pod.pod_name, service_name: 'web', port: 8080, protocol: 'HTTP', ssl_enabled: false };
    const made = await call<ServiceView>('POST', '/pods/expose-service', { key: tenant.key, body });
    expect([made.status, made.body.status]).toEqual([202, 'pending']);
    const { service_id } = made.body;
    const named = { service_id, pod_name: pod.pod_name };
    const status = (query = '', sent?: object) =>
      call<ServiceView & Refusal>('GET', `/pods/expose-service/status${query}`, {
        key: tenant.key,
        ...(sent && { body: sent }),
      });
    const isActive = ({ body: found }: { body: ServiceView }) => found.status === 'active';
    const { body: service } = await until(() => status('', named), isActive);
    expect((await status(`?service_id=${service_id}&pod_name=${pod.pod_name}`)).body).toEqual(service);
    expect((await status('?service_id=999999', named)).status).toBe(400);
    expect((await status('', { service_id, pod_name: 'other-bcdfg' })).status).toBe(404);
    expect(await (await fetch(service.url)).text()).toBe(`${pod.pod_name}\n`);
    const info = `/gpuaas/connection-info?team_id=${tenant.teamId}&search=${pod.pod_name}`;
    // A refresh for which a busy machine has too little time is asked for again.
    const connection = async () => {
      await succeed('POST', `/gpuaas/refresh-connections?team_id=${tenant.teamId}`, { key: tenant.key });
      return succeed<{ data: { pods: object[] }[] }>('GET', info, { key: tenant.key });
    };
    const { data } = await until(connection, (found) => found.data.length > 0);
    expect(data[0]?.pods).toContainEqual({
      pod_name: pod.pod_name,
      status: 'running',
      ssh: expect.objectContaining({ username: pod.pod_name, command: expect.stringMatching(/^ssh -p \d+ web-/) }),
      services: [{ service_id, service_name: 'web', url: service.url }],
    });
    const instances = await succeed<{ data: object[] }>('GET', `/instance?team_id=${tenant.teamId}`, {
      key: tenant.keys.viewer,
    });
    expect(instances.data).toContainEqual(
      expect.objectContaining({ id: pod.pod_id, name: pod.pod_name, kind: 'pod', status: 'running' }),
    );
    const path = `/gpuaas/compatible-instances/${tenant.teamId}`;
    expect(await succeed('GET', path, { key: tenant.key })).toEqual({ data: [] });
    const overview = await succeed<{ total: object }>('GET', `/team/${tenant.teamId}/resource-overview`, {
      key: tenant.key,
    });
    expect(overview.total).toMatchObject({ pods: 1, pods_in_use: 1, gpu_workloads: 1 });
    const twice = await call('POST', '/pods/expose-service', {
      key: tenant.key,
      body: { ...body, service_name: 'other', external_port: service.external_port },
    });
    expect([twice.status, twice.body.code]).toEqual([409, 'port_in_use']);
    const update = { service_id, external_port: service.external_port, ssl_enabled: true };
    expect((await call('PUT', '/pods/update-exposed-service', { key: tenant.key, body: update })).status).toBe(200);
    expect((await until(() => status('', named), isActive)).body.url).toBe(service.url.replace('http:', 'https:'));
    expect((await call('DELETE', `/pods/delete-exposed-service/${service_id}`, { key: tenant.key })).status).toBe(200);
    await until(
      () => status('', named),
      (found) => found.status === 404,
    );
    // By a connection alone: the door spoke TLS at last, and is closed only after its service is gone.
    const { hostname, port } = new URL(service.url);
    const isOpen = () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(Number(port), hostname, () => resolve(true)).on('error', () => resolve(false));
        socket.on('connect', () => socket.destroy());
      });
    await until(isOpen, (open) => !open);
    await call('DELETE', `/pods/${pod.pod_name}`, { key: tenant.key });
    await until(workloads, (found) => found.length === 0);
  });

  it('that crashes runs again, and ends with its subscription', async () => {
    const { body: pod } = await create({ name: 'crash' });
    await until(
      () => read(pod.pod_name),
      ({ body }) => body.restarts >= 1,
    );
    const { body: steady } = await create({ name: 'steady' });
    await comesTo(steady.pod_name, 'running');
    expect((await tenant.unsubscribe(subscriptionId, { force: true })).status).toBe(200);
    for (const { pod_name } of [pod, steady])
      expect((await comesTo(pod_name, 'stopped')).reason).toBe('Its subscription ended.');
    await tenant.subscribed(subscriptionId, 'unsubscribed', 30_000);
    expect((await act(steady.pod_name, 'start')).status).toBe(409);
  });

  it('is for its team: read by a viewer, changed by a member, and not found by anybody else', async () => {
    const list = await succeed<{ data: PodView[] }>('GET', `/pods?team_id=${tenant.teamId}`, {
      key: tenant.keys.viewer,
    });
    const name = list.data[0]?.pod_name ?? '';
    expect((await read(name, tenant.keys.viewer)).status).toBe(200);
    expect((await call('DELETE', `/pods/${name}`, { key: tenant.keys.viewer })).status).toBe(403);
    const stranger = await createTenant('Strangers');
    const [foreign, unknown] = [await read(name, stranger.key), await read('job-xxxxx', stranger.key)];
    expect([foreign.status, foreign.body.detail]).toEqual([404, unknown.body.detail]);
  });
});
