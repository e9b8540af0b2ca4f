import { dockerLacks, startDocker } from '@atoll/testing';
import { clusterContract } from '../contract/cluster-contract-fixture.js';
import { dockerCapabilities } from './docker-driver.js';
import { clusterOn, type EngineCluster } from './engine-cluster-fixture.js';
import { startRegistry } from './registry-fixture.js';

async function startCluster(): Promise<EngineCluster> {
  const registry = await startRegistry();
  const docker = await startDocker({ registry: registry.host });
  return clusterOn(docker, registry, ['rm', '--force']);
}

clusterContract('docker driver on Docker', dockerLacks(), {
  capabilities: dockerCapabilities,
  // Killed while it starts a container, Docker may know it as never started although it runs, and keep a door's port
  // allocated. And Docker itself reads what a program writes: what it has read and not yet stored is lost.
  lacks: ['cut requests', 'lines of a crash'],
  start: startCluster,
});
