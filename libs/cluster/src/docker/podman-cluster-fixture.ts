import { startPodman, type Podman, type PodmanOptions } from '@atoll/testing';
import { clusterOn, type EngineCluster } from './engine-cluster-fixture.js';
import { startRegistry, type Registry } from './registry-fixture.js';

export interface PodmanCluster extends EngineCluster {
  readonly podman: Podman;
  readonly registry: Registry;
}

/** A real Podman service, with the docker driver. */
export async function startPodmanCluster(options: PodmanOptions = {}): Promise<PodmanCluster> {
  const registry = await startRegistry();
  const podman = await startPodman({ ...options, registry: registry.host });
  return { ...clusterOn(podman, registry, ['rm', '--force', '--time', '0']), podman, registry };
}
