import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere, podmanImage, podmanLacks, startPodman, type Podman } from '@atoll/testing';
import { call, until, type Refusal } from '../client.js';
import { createNode, createPool, createTenant } from '../gpu-inventory.js';
import { startPlatform, type RunningPlatform, type Topology } from '../running-platform.js';

interface PodView {
  pod_id: string;
  pod_name: string;
  status: string;
}

interface ClusterView {
  driver: string;
  status: string;
  since: string;
}

const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;

describeWhere(podmanLacks(), 'clusters of several kinds, side by side', () => {
  let podman: Podman;
  let platform: RunningPlatform;
  let tenant: Awaited<ReturnType<typeof createTenant>>;
  /** A GPU service and a subscription of its own. */
  const place = async () => {
    const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }], platform });
    const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 }, platform);
    const { subscription_id } = (await tenant.subscribe({ pool_id: poolId, vgpus: 3 })).body;
    return { gpuaasId: node.gpuaasId, subscription_id };
  };
  let real: Awaited<ReturnType<typeof place>>;
  let simulated: Awaited<ReturnType<typeof place>>;
  beforeAll(async () => {
    podman = await startPodman();
    platform = await startPlatform(topology, {
      ATOLL_DOCKER_SOCKETS: podman.socketPath,
      ATOLL_DOOR_IMAGE: podmanImage,
    });
    tenant = await createTenant('Both kinds', ['member'], platform);
    [real, simulated] = [await place(), await place()];
  });
  afterAll(async () => {
    await platform?.stop();
    await podman?.stop();
  });

  const api = <Body>(method: string, path: string, body?: unknown, key = tenant.key) =>
    call<Body & Refusal>(method, path, { url: platform.url, key, ...(body !== undefined && { body }) });
  const cluster = (method: string, path = '', body?: object) =>
    api<ClusterView>(method, `/gpuaas/${real.gpuaasId}/cluster${path}`, body, platform.adminKey);
  const create = ({ subscription_id }: { subscription_id: string }) => {
    const command = ['bash', '-c', 'trap "exit 0" TERM; sleep infinity & wait'];
    return api<PodView>('POST', '/pods', {
      team_id: tenant.teamId,
      subscription_id,
      name: 'job',
      image: podmanImage,
      memory_gb: 0.25,
      command,
    });
  };
  const running = async (where: { subscription_id: string }) => {
    // Refused, with nothing made, while a look at a cluster on a busy machine is late.
    const { body } = await until(
      () => create(where),
      ({ status }) => status !== 503,
    );
    await until(
      () => api<PodView>('GET', `/pods/${body.pod_name}`),
      (found) => found.body.status === 'running',
    );
    return body;
  };
  /** A check gives a cluster some seconds, which one on a busy machine may need. */
  const answers = () =>
    until(
      () => cluster('POST', '/check'),
      ({ body }) => body.status === 'ok',
    );
  /** All but the keepers of networks. */
  const containers = async () => {
    const names = (await podman.cli('ps', '--format', '{{.Names}}')).split('\n');
    return names.filter((name) => name && !name.includes('-keeper-'));
  };

  it('each GPU service has the driver that was set for it, and keeps it while pods run there', async () => {
    const socket = { driver: 'docker', socket: podman.socketPath };
    expect((await cluster('PUT', '', socket)).body).toMatchObject({ driver: 'docker' });
    await answers();
    const [container, other] = [await running(real), await running(simulated)];
    expect(await containers()).toEqual([expect.stringContaining(container.pod_id)]);
    const refused = await cluster('PUT', '', { driver: 'simulated' });
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
    expect((await api('GET', `/gpuaas/${real.gpuaasId}/cluster`)).status).toBe(403);
    for (const { pod_name } of [container, other]) {
      await api('DELETE', `/pods/${pod_name}`);
      await until(
        () => api('GET', `/pods/${pod_name}`),
        ({ status }) => status === 404,
      );
    }
    expect(await containers()).toEqual([]);
  });

  it('one that does not answer is shown and takes nothing new, the other goes on, and pods start again when it answers', async () => {
    await podman.kill();
    expect((await cluster('POST', '/check')).body.status).toBe('unreachable');
    const refused = await create(real);
    expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
      503,
      'unavailable',
      expect.stringContaining('has not answered'),
    ]);
    const other = await running(simulated);
    await podman.restart();
    await answers();
    const again = await running(real);
    expect(await containers()).toEqual([expect.stringContaining(again.pod_id)]);
    for (const { pod_name } of [again, other]) await api('DELETE', `/pods/${pod_name}`);
    await until(containers, (found) => found.length === 0);
  });
});
