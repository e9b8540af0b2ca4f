import { call, succeed, until, type Operated } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

/** What died with a step in its hands keeps it for 5 s at most. */
export const recoveryMs = 45_000;
const shares = { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 };

interface PodView {
  pod_name: string;
  pod_id: string;
  status: string;
  restarts: number;
}

interface ServiceView {
  service_id: string;
  status: string;
  url: string;
}

/** A tenant with a subscription on a pool of its own. */
export async function subscriber(platform: Operated) {
  const node = await createNode({ platform });
  const { poolId } = await createPool(node, shares, platform);
  const tenant = await createTenant('Survivors', ['member', 'billing_viewer'], platform);
  const { subscription_id } = (await tenant.subscribe({ pool_id: poolId, vgpus: 3 })).body;
  await tenant.subscribed(subscription_id);
  const access = () => ({ url: platform.url, key: tenant.key });
  const read = (pod_name: string) => call<PodView>('GET', `/pods/${pod_name}`, access());
  return {
    node,
    tenant,
    subscription_id,
    create: (name: string) =>
      succeed<PodView>('POST', '/pods', {
        ...access(),
        body: { team_id: tenant.teamId, subscription_id, name, image: 'python:3.13' },
      }),
    remove: (pod_name: string) => succeed('DELETE', `/pods/${pod_name}`, access()),
    runs: (pod_name: string) =>
      until(
        () => read(pod_name),
        ({ body }) => body.status === 'running',
        recoveryMs,
      ),
    gone: (pod_name: string) =>
      until(
        () => read(pod_name),
        ({ status }) => status === 404,
        recoveryMs,
      ),
    expose: (pod_name: string) =>
      succeed<ServiceView>('POST', '/pods/expose-service', {
        ...access(),
        body: { pod_name, service_name: 'web', port: 8080, protocol: 'HTTP' },
      }),
    service: (service_id: string) =>
      call<ServiceView>('GET', `/pods/expose-service/status?service_id=${service_id}`, access()),
    unexpose: (service_id: string) => succeed('DELETE', `/pods/delete-exposed-service/${service_id}`, access()),
    /**
     * Waits until the workloads of the team are those of these pods and no others: gpuaas ends one a step after its
     * pod.
     */
    holds: async (pods: PodView[]) => {
      const path = `/gpuaas/workload?team_id=${tenant.teamId}`;
      const names = async () =>
        (await succeed<{ data: { name: string }[] }>('GET', path, access())).data.map(({ name }) => name).toSorted();
      const expected = pods.map(({ pod_name }) => pod_name).toSorted();
      await until(names, (found) => found.join() === expected.join(), recoveryMs);
    },
    free: async () => (await tenant.offers(node.gpuaasId))[0]?.available_vgpus,
  };
}
