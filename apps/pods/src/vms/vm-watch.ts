import { nilId, Transactions } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ClusterRounds } from '../cluster/cluster-rounds.js';
import { clustersOf } from '../cluster/clusters-of.js';
import { Clusters } from '../cluster/clusters.js';
import { PodsSettings } from '../pods-settings.js';
import { VmSteps } from './vm-steps.js';

/** Has VMs looked at that their cluster no longer shows as running, by a look at all of them from time to time. */
@Injectable()
export class VmWatch extends ClusterRounds {
  constructor(
    dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly clusters: Clusters,
    private readonly steps: VmSteps,
    settings: PodsSettings,
  ) {
    super('the VMs', settings, dataSource);
  }

  protected override get everyMs(): number {
    return this.settings.sweepMs;
  }

  protected override due(): Promise<string[]> {
    return this.clustersBy(clustersOf('vm', `state = 'running'`));
  }

  /** Looks at all VMs of a cluster that run. */
  override async look(gpuaasId: string): Promise<void> {
    const driver = await this.clusters.driverOf(gpuaasId);
    await this.inPages(
      gpuaasId,
      nilId,
      (after, limit) =>
        this.dataSource.query<{ id: string; run: number }[]>(
          `SELECT instance_id AS id, run FROM vm WHERE gpuaas_id = $1 AND state = 'running' AND instance_id > $2 ORDER BY instance_id LIMIT $3`,
          [gpuaasId, after, limit],
        ),
      async (rows, signal) => {
        const sights = await driver.observeVms(
          rows.map(({ id, run }) => ({ kind: 'vm', id, run })),
          signal,
        );
        const changed = rows.filter((_row, at) => sights[at]?.phase !== 'running').map(({ id }) => id);
        if (changed.length > 0) await this.transactions.run((manager) => this.steps.touch(manager, changed));
      },
    );
  }
}
