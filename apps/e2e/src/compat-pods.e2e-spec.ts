import { beforeAll, describe, expect, it } from '@jest/globals';
import { adminKey, call, compatUrl, createTeam, fresh, freshEmail, succeed, until, type TeamView } from './client.js';
import { createNode, createPool } from './gpu-inventory.js';

interface Unified {
  id: string;
  status: string;
  pod_info?: { provisioned_service_name: string; exposed_count: number };
}

const image = 'docker.io/library/python:3.13';
let regionId: string;
let team: TeamView;
let key: string;
let subscription_id: number;
let image_uuid: string | undefined;

const old = <Body = { code: number; message: string }>(method: string, path: string, body?: unknown, by = key) =>
  call<Body>(method, path, { url: compatUrl, body, headers: { 'x-api-key': by } });
const ok = <Body>(method: string, path: string, body?: unknown): Promise<Body> =>
  succeed<Body>(method, path, { url: compatUrl, body, headers: { 'x-api-key': key } });
const list = () =>
  ok<{ items: Unified[]; total_items: number }>('GET', `/instances/unified?team_id=${team.id}&page=0&per_page=50`);
const first = async (): Promise<Unified> => {
  const [item] = (await list()).items;
  if (!item) throw new Error('The team has no instance.');
  return item;
};

beforeAll(async () => {
  const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
  ({ regionId } = node);
  const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 8 });
  const objects = [{ name: 'python', reference: image }];
  const policy = await succeed<{ id: string; objects: { id: string }[] }>('POST', '/policy/image', {
    key: adminKey,
    body: { name: fresh('p'), objects },
  });
  image_uuid = policy.objects[0]?.id;
  const members = [{ email: freshEmail('renter'), name: 'Renter', role: 'team_admin' }];
  const order = {
    url: compatUrl,
    key: adminKey,
    body: { name: fresh('Renters'), members, image_policy_id: policy.id },
  };
  team = await succeed<TeamView>('POST', '/team', order);
  key = team.members[0]?.api_key ?? '';
  ({ subscription_id } = await ok<{ subscription_id: number }>('POST', '/gpuaas/pool/subscribe', {
    team_id: team.id,
    pool_id: poolId,
    vgpus: 1,
    image_uuid,
  }));
  await until(first, ({ status }) => status === 'running', 30_000);
});

describe('what a team rents, by the old calls', () => {
  it('is listed, exposed, stopped, started, given another image and deleted', async () => {
    const { id, pod_info } = await first();
    const pod_name = pod_info?.provisioned_service_name;
    expect(await ok('GET', `/instances/unified/${id}`)).toMatchObject({
      id,
      team: { id: team.id, name: team.name },
      nature: 'pod',
      shared_volumes: [],
    });
    const service = {
      pod_name,
      pool_subscription_id: subscription_id,
      port: 80,
      service_name: 'web',
      protocol: 'TCP',
      service_type: 'http',
    };
    const exposed = await ok<{ id: number }>('POST', '/pods/expose-service', service);
    expect(await old('POST', '/pods/expose-service', service)).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining('service name already exists') },
    });
    const path = `/pods/expose-service/status?service_name=web&pool_subscription_id=${subscription_id}`;
    await until(
      () => ok<{ status: string }>('GET', path),
      ({ status }) => status === 'active',
    );
    expect(await ok('GET', `/instances/unified/${id}/exposed-services`)).toMatchObject([
      { id: exposed.id, internal_port: 80, type: 'http' },
    ]);
    const ssh_info = { cmd: expect.stringMatching(`^ssh -p \\d+ ${pod_name}@127.0.0.1$`), pass: '' };
    const discovered_services = [expect.objectContaining({ id: exposed.id, status: 'active' })];
    expect(
      await ok('GET', `/gpuaas/connection-info?team_id=${team.id}&subscription_id=${subscription_id}`),
    ).toMatchObject([
      { id: subscription_id, pods: [{ pod_name, pod_status: 'running', ssh_info, discovered_services }] },
    ]);
    expect(await ok('GET', `/instance/${id}/credentials`)).toMatchObject({
      ip: '127.0.0.1',
      username: pod_name,
      password: '',
    });
    expect(await ok('DELETE', `/pods/delete-exposed-service/${exposed.id}`)).toMatchObject({ id: exposed.id });

    await ok('POST', '/gpuaas/pool/reimage', { subscription_id, team_id: team.id, image_uuid });
    await until(first, ({ status }) => status === 'running', 30_000);
    await ok('PUT', `/instance/${id}/stop`);
    await until(first, ({ status }) => status === 'stopped', 30_000);
    await ok('POST', '/pods/action', { pod_name, pool_subscription_id: subscription_id, pod_action: 'start' });
    await until(first, ({ status }) => status === 'running', 30_000);
    await ok('DELETE', `/instance/${id}`);
    await until(list, ({ total_items }) => total_items === 0, 30_000);
    expect((await old('GET', `/instances/unified/${id}`)).status).toBe(404);
  });

  it('has VMs among its instances, which are stopped, restarted, renamed and deleted', async () => {
    const flavour = fresh('f')
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]/g, '');
    await succeed('POST', '/vm/flavour', { key: adminKey, body: { name: flavour, vcpus: 4, memory_gb: 16 } });
    const body = { team_id: team.id, region_id: regionId, name: 'head-node', flavour, image };
    const { instance_id } = await succeed<{ instance_id: string }>('POST', '/vm', { key, body });
    const path = `/instances/unified/i-${instance_id}`;
    const comesTo = (status: string) =>
      until(
        () => ok<Unified>('GET', path),
        (vm) => vm.status === status,
        30_000,
      );
    expect(await comesTo('running')).toMatchObject({
      nature: 'vm',
      instance_type: { name: flavour, cpu_cores: 4 },
      shared_volumes: [],
    });
    const { items } = await list();
    expect(items.map(({ id }) => id)).toContain(`i-${instance_id}`);
    await ok('PUT', `/instance/i-${instance_id}/stop`);
    await comesTo('stopped');
    for (const action of ['start', 'restart']) {
      await ok('PUT', `/instance/i-${instance_id}/${action}`);
      await comesTo('running');
    }
    await ok('PUT', `/instance/i-${instance_id}/rename`, { name: 'renamed' });
    expect(await ok('GET', path)).toMatchObject({ name: 'renamed' });
    expect((await old('GET', `/instance/i-${instance_id}/credentials`)).status).toBe(422);
    const ours = await createTeam(fresh('Ours'), ['team_owner']);
    expect((await old('PUT', `/instance/i-${instance_id}/stop`, undefined, ours.keys.team_owner)).status).toBe(404);
    await ok('DELETE', `/instance/i-${instance_id}`);
    await until(
      () => old('GET', path),
      ({ status }) => status === 404,
      30_000,
    );
  });

  it('has volumes in the sizes on offer', async () => {
    const [block] = await ok<{ id: number; size: number }[]>(
      'GET',
      `/shared-volumes/shared-storage-blocks?region_id=${regionId}&team_id=${team.id}`,
    );
    const order = { team_id: team.id, region_id: Number(regionId), name: fresh('volume'), storage_block_id: block?.id };
    const volume = await ok<{ id: number }>('POST', '/shared-volumes', order);
    expect(await ok('GET', `/shared-volumes?team_id[eqstr]=${team.id}`)).toMatchObject([
      { id: volume.id, size_in_gb: block?.size, status: 'AVAILABLE' },
    ]);
    await until(
      () => old('DELETE', `/shared-volumes/${volume.id}`),
      ({ status }) => status === 200,
    );
  });

  it('is nobody else’s', async () => {
    const { poolId } = await createPool(await createNode(), { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 2 });
    const { subscription_id: held } = await ok<{ subscription_id: number }>('POST', '/gpuaas/pool/subscribe', {
      team_id: team.id,
      pool_id: poolId,
      vgpus: 1,
      image_uuid,
    });
    const { id, pod_info } = await until(first, ({ status }) => status === 'running', 30_000);
    const pod_name = pod_info?.provisioned_service_name;
    const ours = await createTeam(fresh('Ours'), ['team_owner']);
    const calls: [string, string, object?][] = [
      ['GET', `/instances/unified?team_id=${team.id}`],
      ['GET', `/instances/unified/${id}`],
      ['GET', `/instances/unified/${id}/exposed-services`],
      ['GET', `/instance/${id}/credentials`],
      ['PUT', `/instance/${id}/stop`],
      ['PUT', `/instance/${id}/rename`, { name: 'mine' }],
      ['DELETE', `/instance/${id}`],
      ['POST', '/pods/action', { pod_name, pod_action: 'stop' }],
      ['POST', '/pods/volume-action', { pod_name, action: 'attach_volume', volumes: [1] }],
      [
        'POST',
        '/pods/expose-service',
        { pod_name, port: 80, service_name: 'spy', protocol: 'TCP', service_type: 'http' },
      ],
      ['GET', `/pods/expose-service/status?service_name=web&pool_subscription_id=${held}`],
      ['POST', '/gpuaas/pool/reimage', { subscription_id: held, team_id: team.id, image_uuid }],
      ['GET', `/shared-volumes?team_id=${team.id}`],
      ['POST', '/shared-volumes', { team_id: team.id, region_id: regionId, name: 'spy', storage_block_id: 10 }],
    ];
    for (const [method, path, body] of calls) {
      expect([method, path, (await old(method, path, body, ours.keys.team_owner)).status]).toEqual([method, path, 404]);
    }
    expect((await old('GET', '/instances/unified', undefined, ours.keys.team_owner)).status).toBe(403);
    expect(
      (await old<{ total_items: number }>('GET', '/instances/unified', undefined, adminKey)).body.total_items,
    ).toBeGreaterThan(0);
    expect((await first()).status).toBe('running');
    await ok('POST', '/gpuaas/pool/unsubscribe', { subscription_id: held });
  });
});
