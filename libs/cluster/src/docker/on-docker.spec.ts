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
  // A start that is cut short may leave the door's port allocated to nothing, as Docker itself sees it. And Docker
  // reads what a program writes: what it has read and not yet stored ends with it.
  lacks: ['cut requests', 'lines of a crash'],
  start: startCluster,
});
