import { podmanLacks } from '@atoll/testing';
import { clusterContract } from '../contract/cluster-contract-fixture.js';
import { dockerCapabilities } from './docker-driver.js';
import { startPodmanCluster } from './podman-cluster-fixture.js';

clusterContract('docker driver on Podman', podmanLacks(), { capabilities: dockerCapabilities, start: () => startPodmanCluster() });
