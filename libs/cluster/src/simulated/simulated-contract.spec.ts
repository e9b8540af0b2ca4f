import { rowsOf } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { createDatabase } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { clusterContract } from '../contract/cluster-contract-fixture.js';
import type { ClusterUnderTest, Program } from '../contract/cluster-under-test-fixture.js';
import { simulatedCapabilities } from './simulated-cluster.js';
import { SimulatedWorld } from './simulated-world.js';

const program = (scenario: string): Program => ({ image: `example.com/${scenario}:1`, command: [] });

/** A world on a database of its own: a crash ends the process that listens, and another one takes over. */
async function start(): Promise<ClusterUnderTest> {
  const database = await createDatabase();
  const dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
  const secrets = new Sealer(Sealer.createKeys());
  const begin = () => {
    const world = new SimulatedWorld({ store: rowsOf(dataSource), listenHost: '127.0.0.1', secrets, pullMs: 50 });
    world.listen();
    return world;
  };
  let world = begin();
  return {
    programs: {
      idle: program('idle'),
      stubborn: program('hang'),
      exits: (code) => program(`exit-${code}`),
      prints: () => program('plain'),
      serves: program('tcp-echo'),
      dials: null,
      fills: null,
      missingImage: program('pull-fail'),
    },
    publicHost: '127.0.0.1',
    open: (installationId) => world.cluster(installationId),
    crash: async () => {
      await world.close();
      world = begin();
    },
    stopByHand: (installationId, ref) => world.cluster(installationId).runs.stop(ref, 0),
    removeByHand: (installationId, ref) => world.cluster(installationId).runs.remove(ref),
    stop: async () => {
      await world.close();
      await dataSource.destroy();
      await database.drop();
    },
  };
}

clusterContract('simulated driver', undefined, {
  capabilities: simulatedCapabilities,
  // What it has is in the database that is restored.
  lacks: ['scripts', 'printed lines', 'broken watches', 'doors by hand', 'restores'],
  start,
});
