import { SimulatedWorld, type ClusterDriver } from '@atoll/cluster';
import { rowsOf } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { PodsSettings } from '../pods-settings.js';

/** What runs the pods of each GPU service. */
export abstract class Clusters {
  abstract driverOf(gpuaasId: string): Promise<ClusterDriver>;
  /** Under which the exposed services of this GPU service are reached. */
  abstract publicHostOf(gpuaasId: string): Promise<string>;
}

/** Simulated clusters, one for each GPU service. */
@Injectable()
export class SimulatedClusters extends Clusters implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly world: SimulatedWorld;

  constructor(
    dataSource: DataSource,
    private readonly settings: PodsSettings,
    sealer: Sealer,
  ) {
    super();
    const { simulatedHost: listenHost, simulatedPullMs: pullMs } = settings;
    this.world = new SimulatedWorld({ store: rowsOf(dataSource), listenHost, pullMs, secrets: sealer });
  }

  onApplicationBootstrap(): void {
    this.world.listen();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.world.close();
  }

  driverOf(gpuaasId: string): Promise<ClusterDriver> {
    return Promise.resolve(this.world.cluster(`gpuaas-${gpuaasId}`));
  }

  publicHostOf(): Promise<string> {
    return Promise.resolve(this.settings.simulatedHost);
  }
}
