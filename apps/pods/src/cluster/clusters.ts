import { SimulatedWorld, type ClusterDriver } from '@atoll/cluster';
import { rowsOf } from '@atoll/database';
import { Injectable } from '@nestjs/common';
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
export class SimulatedClusters extends Clusters {
  readonly world: SimulatedWorld;

  constructor(
    dataSource: DataSource,
    private readonly settings: PodsSettings,
  ) {
    super();
    const { simulatedHost: listenHost, simulatedPullMs: pullMs } = settings;
    this.world = new SimulatedWorld({ store: rowsOf(dataSource), listenHost, pullMs });
  }

  driverOf(gpuaasId: string): Promise<ClusterDriver> {
    return Promise.resolve(this.world.cluster(`gpuaas-${gpuaasId}`));
  }

  publicHostOf(): Promise<string> {
    return Promise.resolve(this.settings.simulatedHost);
  }
}
