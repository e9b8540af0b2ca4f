import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { generateKeyPair } from '@atoll/ssh';
import { describeWhere, freePort, podmanImage, podmanLacks, startPodman, type Podman } from '@atoll/testing';
import ssh2 from 'ssh2';
import { call, until, type Refusal } from '../client.js';
import { createNode, createPool, createTenant } from '../gpu-inventory.js';
import { startPlatform, type RunningPlatform, type Topology } from '../running-platform.js';

interface PodView {
  pod_id: string;
  pod_name: string;
  status: string;
  exit_code: number | null;
}

interface ServiceView {
  service_id: string;
  status: string;
  external_port: number;
  url: string;
}

const patienceMs = 30_000;
const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;

describeWhere(podmanLacks(), 'pods as real containers', () => {
  let podman: Podman;
  let platform: RunningPlatform;
  let tenant: Awaited<ReturnType<typeof createTenant>>;
  let subscriptionId: string;
  const sshPort = freePort();
  beforeAll(async () => {
    podman = await startPodman();
    const engine = { ATOLL_CLUSTER: 'docker', ATOLL_DOCKER_SOCKETS: podman.socketPath, ATOLL_DOOR_IMAGE: podmanImage };
    platform = await startPlatform(topology, { ...engine, ATOLL_SSH_PORT: String(await sshPort) });
    // The operator, who names no owner, is the owner.
    tenant = await createTenant('Containers', ['member'], platform);
    const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }], platform });
    const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 }, platform);
    subscriptionId = (await tenant.subscribe({ pool_id: poolId, vgpus: 2 })).body.subscription_id;
  });
  afterAll(async () => {
    await platform?.stop();
    await podman?.stop();
  });

  const api = <Body>(method: string, path: string, body?: unknown, key = tenant.key) =>
    call<Body & Refusal>(method, path, { url: platform.url, key, ...(body !== undefined && { body }) });
  /**
   * On a busy machine the cluster may answer too late to be told from one that is away; it is back with the next look
   * at it.
   */
  const accepted = async <Body>(path: string, asked: object) => {
    const { status, body } = await until(
      () => api<Body>('POST', path, asked),
      (answer) => answer.status !== 503,
    );
    expect([status, body.detail]).toEqual([202, undefined]);
    return body;
  };
  const create = (command: string[], more: object = {}) => {
    const pod = {
      team_id: tenant.teamId,
      subscription_id: subscriptionId,
      name: 'train',
      image: podmanImage,
      memory_gb: 0.25,
    };
    return accepted<PodView>('/pods', { ...pod, command, ...more });
  };
  const comesTo = async ({ pod_name }: PodView, status: string) =>
    (
      await until(
        () => api<PodView>('GET', `/pods/${pod_name}`),
        ({ body }) => body.status === status,
      )
    ).body;
  /** All but the keepers of networks. */
  const containers = async () => {
    const names = (await podman.cli('ps', '--format', '{{.Names}}')).split('\n');
    return names.filter((name) => name && !name.includes('-keeper-'));
  };

  it('start from a subscription, are entered by SSH with a key of a member, and are gone when they are deleted', async () => {
    const pod = await create(['bash', '-c', 'trap "exit 0" TERM; sleep infinity & wait']);
    await comesTo(pod, 'running');
    expect(await containers()).toEqual([expect.stringContaining(pod.pod_id)]);

    const { privateKey, publicKey: public_key } = generateKeyPair();
    const key = await api<{ ssh_key_id: string }>(
      'POST',
      '/user/ssh-key',
      { public_key, name: 'laptop' },
      platform.adminKey,
    );
    expect(key.status).toBe(201);
    const host = { host: '127.0.0.1', port: await sshPort };
    const enter = () => {
      const entering = new ssh2.Client().on('error', () => undefined);
      entering.connect({ ...host, username: pod.pod_name, privateKey });
      return once(entering, 'ready').then(
        () => entering,
        () => undefined,
      );
    };
    // Again where the door of a busy machine was too late to let it in.
    const client = (await until(enter, (entered) => entered !== undefined)) as ssh2.Client;
    const channel = await new Promise<ssh2.ClientChannel>((resolve, reject) => {
      client.exec('echo "on $(hostname) with $ATOLL_SLICES"', (error, opened) =>
        error ? reject(error) : resolve(opened),
      );
    });
    expect(await text(channel)).toMatch(new RegExp(`^on ${pod.pod_name} with GPU-`));
    const left = once(client, 'close');
    const deleted = await api('DELETE', `/user/ssh-key/${key.body.ssh_key_id}`, undefined, platform.adminKey);
    expect(deleted.status).toBe(204);
    await left;

    expect((await api('DELETE', `/pods/${pod.pod_name}`)).status).toBe(202);
    await until(
      () => api<PodView>('GET', `/pods/${pod.pod_name}`),
      ({ status }) => status === 404,
    );
    expect(await containers()).toEqual([]);
  });

  it('are reached by the url of a service that they expose, on another port after an update, and not after its deletion', async () => {
    const serve = 'mkdir -p /tmp/www && hostname > /tmp/www/index.html && exec busybox httpd -f -p 8080 -h /tmp/www';
    const pod = await create(['bash', '-c', serve], { name: 'web' });
    await comesTo(pod, 'running');
    const terms = { pod_name: pod.pod_name, service_name: 'web', port: 8080, protocol: 'HTTP', ssl_enabled: false };
    const { service_id } = await accepted<ServiceView>('/pods/expose-service', terms);
    const status = () =>
      api<ServiceView>('GET', `/pods/expose-service/status?service_id=${service_id}&pod_name=${pod.pod_name}`);
    const active = async () => (await until(status, ({ body }) => body.status === 'active', patienceMs)).body;
    const first = await active();
    const page = (url: string) => fetch(url).then((answer) => answer.text());
    expect(await page(first.url)).toBe(`${pod.pod_name}\n`);
    // A neighbour: the range that it was picked from begins with an even port and ends with an odd one.
    const other = { service_id, external_port: first.external_port ^ 1 };
    expect((await api('PUT', '/pods/update-exposed-service', other)).status).toBe(200);
    const second = await active();
    expect(second.external_port).toBe(other.external_port);
    expect(await page(second.url)).toBe(`${pod.pod_name}\n`);
    expect((await api('DELETE', `/pods/delete-exposed-service/${service_id}`)).status).toBe(200);
    await until(status, (found) => found.status === 404, patienceMs);
    // The doors are closed after the service is gone.
    for (const { url } of [first, second]) {
      const isOpen = () =>
        page(url).then(
          () => true,
          () => false,
        );
      await until(isOpen, (open) => !open, patienceMs);
    }
    await api('DELETE', `/pods/${pod.pod_name}`);
  });

  it('tell the exit code of their process', async () => {
    const pod = await create(['bash', '-c', 'exit 3'], { restart: 'never' });
    expect((await comesTo(pod, 'failed')).exit_code).toBe(3);
  });
});
