import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { baremetal, gpuaasBatches } from '@atoll/contracts/gpuaas';
import { exposedServices, podBatches, pods, vms, type FoundInstance, type Pod, type Vm } from '@atoll/contracts/pods';
import { imagePolicies, teamBatches } from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { teamId } from '../../testing/team-fixture.js';
import { startCompat, type CompatUnderTest } from '../testing/compat-fixture.js';
import { aPod, aService, aVolume, created_at } from '../testing/pools-fixture.js';

const podId = '01890000-0000-7000-8000-0000000000a1';
const hostId = '01890000-0000-7000-8000-0000000000a2';
const workspaceId = '01890000-0000-7000-8000-0000000000a3';
const imageId = '01890000-0000-7000-8000-0000000000a4';
const vmId = '01890000-0000-7000-8000-0000000000a5';

const pod: Pod = {
  ...aPod('a-qwert'),
  pod_id: podId,
  team_id: teamId,
  name: 'a',
  volumes: [{ volume_id: '5', path: '/data' }],
};
const vm: Vm = {
  instance_id: vmId,
  name: 'head',
  team_id: teamId,
  workspace_id: workspaceId,
  region_id: '3',
  gpuaas_id: '7',
  flavour: 'small',
  vcpus: 4,
  memory_gb: 16.5,
  image: 'debian:13',
  auto_restart: false,
  status: 'running',
  reason: null,
  restarts: 0,
  volumes: [
    { volume_id: '6', path: '/scratch' },
    { volume_id: '7', path: '/gone' },
  ],
  created_at,
  started_at: created_at,
  deleted_at: null,
};

let compat: CompatUnderTest;
let key: string;
beforeAll(async () => {
  compat = await startCompat();
  const { services } = compat.gateway;
  key = services.key();
  const place = { team_id: teamId, workspace_id: workspaceId, created_at };
  const all: FoundInstance[] = [
    {
      id: podId,
      name: 'a-qwert',
      kind: 'pod',
      status: 'pulling',
      region_id: '3',
      ...place,
      pod,
      vm: null,
      exposed_count: 1,
    },
    {
      id: hostId,
      name: 'metal',
      kind: 'baremetal',
      status: 'Active',
      region_id: null,
      ...place,
      pod: null,
      vm: null,
      exposed_count: 0,
    },
    {
      id: vmId,
      name: 'head',
      kind: 'vm',
      status: 'running',
      region_id: '3',
      ...place,
      pod: null,
      vm,
      exposed_count: 0,
    },
  ];
  services.answer(podBatches.instances, ({ instance_id }) => {
    const data = instance_id === undefined ? all : all.filter(({ id }) => id === instance_id);
    if (data.length === 0) throw new AppError('not_found', 'No such instance.');
    const status_counts = ['pulling', 'pending', 'Requested'].map((status) => ({ status, count: 2 }));
    return { data, pagination: { page: 0, limit: 10, total: data.length }, status_counts };
  });
  services.answer(podBatches.exposed, () => ({ data: [aService()] }));
  services.answer(gpuaasBatches.places, () => ({
    subscriptions: [{ subscription_id: '2', pool_id: '1', pool_name: 'pool-1', board: 'A100-80GB', v_ram_gb: '10' }],
    regions: [{ region_id: '3', region_name: 'eu', city: 'Oslo', country: 'Norway', created_at }],
  }));
  services.answer(teamBatches.workspaces, () => ({
    workspaces: [{ id: workspaceId, name: 'default', team_id: teamId, team_name: 'Research' }],
  }));
  services.answer(podBatches.volumes, ({ volume_ids = [] }) => ({
    data: volume_ids.filter((id) => id !== '7').map((id) => aVolume(id, '/data')),
  }));
  services.answer(podBatches.ofSubscriptions, () => ({ data: [pod] }));
  services.answer(pods.get, ({ pod_name }) => ({ ...pod, pod_name }));
  for (const operation of [vms.start, vms.stop, vms.restart, vms.update, vms.delete])
    services.answer(operation, () => vm);
  for (const operation of [pods.act, pods.update, pods.delete, podBatches.mount]) services.answer(operation, () => pod);
  services.answer(exposedServices.list, () => ({ data: [aService()] }));
  services.answer(exposedServices.expose, () => aService());
  services.answer(exposedServices.update, () => aService());
  services.answer(exposedServices.delete, () => aService());
});
afterAll(() => compat.close());

const call = async (method: string, url: string, body?: unknown) =>
  compat.call<Record<string, unknown>>(method, url, { key, body });
const read = async (url: string) => (await call('GET', url)).body;
const asked = (operation: { subject: string }) => compat.gateway.services.callsOf(operation).at(-1)?.input;
const unified = `/api/instances/unified/i-${podId}`;

describe('instances', () => {
  it('are listed as one kind, with their places, and nothing is asked once a row', async () => {
    const before = compat.gateway.services.calls.length;
    const page = await read(`/api/instances/unified?team_id=${teamId}&page=0&per_page=20000`);
    expect(compat.gateway.services.calls.length - before).toBeLessThan(6);
    expect(asked(podBatches.instances)).toEqual({ team_id: teamId, page: 0, limit: 1000 });
    expect(page).toMatchObject({
      total_items: 3,
      status_counts: [
        { status: 'starting', count: 2 },
        { status: 'pending', count: 4 },
      ],
    });
    const [first, second, third] = page.items as Record<string, unknown>[];
    expect(first).toEqual({
      id: `i-${podId}`,
      name: 'a',
      created_at,
      status: 'starting',
      nature: 'pod',
      ip: [],
      service: { id: 2, name: 'pool-1', type: 'pod' },
      team: { id: teamId, name: 'Research' },
      region: { id: 3, region_name: 'eu', city: 'Oslo', country: 'Norway', country_code: 'NO' },
      workspace: { id: workspaceId, name: 'default' },
      pod_info: {
        pool_id: 1,
        pool_name: 'pool-1',
        model: 'A100-80GB',
        vendor: 'NVIDIA',
        provisioned_service_name: 'a-qwert',
        exposed_count: 1,
        vgpu_count: 1,
        vram_gb: '10',
      },
    });
    expect(second).toMatchObject({ id: `i-${hostId}`, status: 'active', nature: 'baremetal', region: { id: null } });
    const instance_type = { id: 'small', name: 'small', cpu_cores: 4, ram_mb: 15_736 };
    expect(third).toMatchObject({
      id: `i-${vmId}`,
      name: 'head',
      status: 'running',
      nature: 'vm',
      region: { id: 3 },
      instance_type,
    });
    expect([second, third].some((item) => item && ('pod_info' in item || 'service' in item))).toBe(false);
  });

  it('are read by their ids, with volumes and exposed services; others are not found', async () => {
    const volume = { id: 5, name: 'v5', mount_point: '/data', size_in_gb: 100, status: 'IN_USE', mount_error: null };
    expect(await read(unified)).toMatchObject({ id: `i-${podId}`, shared_volumes: [volume] });
    const ofVm = { id: 6, name: 'v6', mount_point: '/scratch', status: 'IN_USE', mount_status: 'mounted' };
    const gone = { id: 7, name: '', mount_point: '/gone', size_in_gb: null, status: 'deleted' };
    expect(await read(unified.replace(podId, vmId))).toMatchObject({ id: `i-${vmId}`, shared_volumes: [ofVm, gone] });
    expect(asked(podBatches.volumes)).toEqual({ team_id: teamId, volume_ids: ['6', '7'] });
    expect(await read(`/api/instances/unified/i-${vmId}/exposed-services`)).toEqual([]);
    expect(await read(unified.replace('i-', ''))).toMatchObject({ id: `i-${podId}` });
    expect(await read(`${unified}/exposed-services`)).toMatchObject([{ id: 5, external_port: 30_100, type: 'https' }]);
    expect(await read(`/api/instances/unified/i-${hostId}/exposed-services`)).toEqual([]);
    expect((await call('GET', unified.replace(podId, imageId))).status).toBe(404);
    for (const id of ['7', 'i-7', `x-${podId}`])
      expect((await call('GET', `/api/instances/unified/${id}`)).status).toBe(400);
  });

  it('are logged in to as each kind is', async () => {
    const { services } = compat.gateway;
    const ssh = { host: 'gpu.example.com', port: 2222, username: 'a-qwert', command: 'ssh' };
    services.answer(podBatches.connections, () => ({
      data: [{ subscription_id: '2', pod_name: 'a-qwert', status: 'running', ssh, services: [] }],
    }));
    services.answer(baremetal.credentials, () => ({
      host: 'metal',
      port: 22,
      username: 'atl',
      ssh_password: 'hunter2',
    }));
    expect(await read(`/api/instance/i-${podId}/credentials`)).toEqual({
      ip: 'gpu.example.com',
      port: 2222,
      username: 'a-qwert',
      password: '',
    });
    expect(await read(`/api/instance/i-${hostId}/credentials`)).toEqual({
      ip: 'metal',
      port: 22,
      username: 'atl',
      password: 'hunter2',
    });
    const ofVm = await call('GET', `/api/instance/i-${vmId}/credentials`);
    expect([ofVm.status, ofVm.body.message]).toEqual([
      422,
      expect.stringContaining('The platform offers no log-in to VMs'),
    ]);
    expect(JSON.stringify(compat.gateway.logged())).not.toContain('hunter2');
  });

  it('are started, stopped, renamed and deleted, where their kind can be', async () => {
    for (const action of ['start', 'stop', 'restart']) {
      expect(await call('PUT', `/api/instance/i-${podId}/${action}`, '""')).toMatchObject({ status: 200, body: {} });
      expect(asked(pods.act)).toEqual({ pod_name: 'a-qwert', action });
      expect((await call('PUT', `/api/instance/i-${hostId}/${action}`)).status).toBe(422);
    }
    for (const action of ['start', 'stop', 'restart'] as const) {
      expect(await call('PUT', `/api/instance/i-${vmId}/${action}`)).toMatchObject({ status: 200, body: {} });
      expect(asked(vms[action])).toEqual({ instance_id: vmId });
    }
    expect((await call('PUT', `/api/instance/i-${vmId}/rename`, { name: 'b' })).status).toBe(200);
    expect(asked(vms.update)).toEqual({ instance_id: vmId, name: 'b' });
    expect((await call('DELETE', `/api/instance/i-${vmId}`)).status).toBe(200);
    expect(asked(vms.delete)).toEqual({ instance_id: vmId });
    expect((await call('PUT', `/api/instance/i-${podId}/rename`, { name: 'b' })).status).toBe(200);
    expect(asked(pods.update)).toEqual({ pod_name: 'a-qwert', name: 'b' });
    expect((await call('DELETE', `/api/instance/i-${podId}`)).status).toBe(200);
    expect(asked(pods.delete)).toEqual({ pod_name: 'a-qwert' });
  });
});

describe('pods', () => {
  it('take actions of the subscription that is named', async () => {
    const action = { pod_name: 'a-qwert', pool_subscription_id: 2, pod_action: 'stop' };
    expect((await call('POST', '/api/pods/action', action)).status).toBe(200);
    expect((await call('POST', '/api/pods/action', { ...action, pool_subscription_id: 3 })).status).toBe(404);
    expect((await call('POST', '/api/pods/action', { ...action, pod_action: 'explode' })).status).toBe(400);
  });

  it('have volumes attached and detached, beside the others', async () => {
    const change = { pod_name: 'a-qwert', action: 'attach_volume', volumes: [6] };
    expect((await call('POST', '/api/pods/volume-action', change)).status).toBe(200);
    expect(asked(podBatches.mount)).toEqual({ pod_name: 'a-qwert', attach: [{ volume_id: '6', path: '/volumes/6' }] });
    await call('POST', '/api/pods/volume-action', { ...change, action: 'detach_volume', volumes: ['5'] });
    expect(asked(podBatches.mount)).toEqual({ pod_name: 'a-qwert', detach: ['5'] });
  });

  it('get another image, and are restarted with it', async () => {
    const images = [{ id: imageId, name: 'py', reference: 'docker.io/library/python:3.14' }];
    compat.gateway.services.answer(imagePolicies.teamImages, () => ({ data: images }));
    const change = { subscription_id: '2', team_id: teamId, image_uuid: imageId };
    expect((await call('POST', '/api/gpuaas/pool/reimage', change)).status).toBe(200);
    expect(asked(pods.update)).toEqual({ pod_name: 'a-qwert', image: 'docker.io/library/python:3.14' });
    expect(asked(pods.act)).toEqual({ pod_name: 'a-qwert', action: 'restart' });
    expect(asked(podBatches.ofSubscriptions)).toEqual({ team_id: teamId, subscription_ids: ['2'] });
    expect((await call('POST', '/api/gpuaas/pool/reimage', { ...change, image_uuid: podId })).status).toBe(404);
  });

  it.each([
    ['http', 'TCP', 'HTTP', false],
    ['HTTPS', 'tcp', 'HTTP', true],
    ['NodePort', 'UDP', 'UDP', false],
    ['loadbalancer', 'HTTP', 'TCP', false],
    [undefined, 'https', 'HTTP', true],
    [undefined, undefined, 'TCP', false],
  ])('expose a service of the type %s over %s', async (service_type, protocol, spoken, ssl_enabled) => {
    const { status, body } = await call('POST', '/api/pods/expose-service', {
      pod_name: 'a-qwert',
      port: '80',
      service_name: 'new',
      service_type,
      protocol,
    });
    expect([status, body]).toMatchObject([
      200,
      { id: 5, team_id: teamId, node_port: 30_100, pod_port: 80, service_type: 'https' },
    ]);
    expect(asked(exposedServices.expose)).toEqual({
      pod_name: 'a-qwert',
      port: 80,
      service_name: 'new',
      protocol: spoken,
      ssl_enabled,
    });
  });

  it('tell a name that is taken in the words that clients look for, and other conflicts as they are', async () => {
    const { services } = compat.gateway;
    services.answer(exposedServices.expose, () => {
      throw new AppError('conflict', 'The pod does not run.');
    });
    const expose = { pod_name: 'a-qwert', port: 80, service_name: 'web', protocol: 'TCP', service_type: 'http' };
    const taken = await call('POST', '/api/pods/expose-service', expose);
    expect(taken).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining('service name already exists') },
    });
    const other = await call('POST', '/api/pods/expose-service', { ...expose, service_name: 'new' });
    expect(other).toMatchObject({ status: 409, body: { message: 'The pod does not run.' } });
  });

  it('show, change and delete an exposed service', async () => {
    expect(await read('/api/pods/expose-service/status?service_name=web&pool_subscription_id=2')).toMatchObject({
      id: 5,
      status: 'active',
    });
    expect((await call('GET', '/api/pods/expose-service/status?service_name=x&pool_subscription_id=2')).status).toBe(
      404,
    );
    expect((await call('PUT', '/api/pods/update-exposed-service', { id: 5, port: 81 })).status).toBe(200);
    expect(asked(exposedServices.update)).toEqual({ service_id: '5', port: 81 });
    const changed = async (change: object) => {
      expect((await call('PUT', '/api/pods/update-exposed-service', { id: 5, ...change })).status).toBe(200);
      return asked(exposedServices.update);
    };
    const { services } = compat.gateway;
    services.answer(exposedServices.find, aService);
    for (const protocol of ['TCP', 'udp', 'HTTP'])
      expect(await changed({ port: 81, protocol })).toEqual({ service_id: '5', port: 81 });
    for (const [none, needed] of [
      [{}, ['service_name', 'port', 'protocol', 'service_type']],
      [{ protocol: 'TCP' }, ['service_name', 'port', 'service_type']],
    ] as const) {
      const { status, body } = await call('PUT', '/api/pods/update-exposed-service', { id: 5, ...none });
      expect([status, body.errors]).toMatchObject([400, needed.map((field) => ({ field }))]);
      expect(body.message).toBe(`At least one of these is needed: ${needed.join(', ')}.`);
    }
    expect(await changed({ service_type: 'http' })).toEqual({ service_id: '5', protocol: 'HTTP', ssl_enabled: false });
    services.answer(exposedServices.find, () => ({ ...aService(), protocol: 'TCP', ssl_enabled: false }));
    expect(await changed({ protocol: 'UDP' })).toEqual({ service_id: '5', protocol: 'UDP', ssl_enabled: false });
    expect((await call('DELETE', '/api/pods/delete-exposed-service/5')).body).toMatchObject({ id: 5 });
  });
});
