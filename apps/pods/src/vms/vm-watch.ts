import { Transactions } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ClusterRounds } from '../cluster/cluster-rounds.js';
import { Clusters } from '../cluster/clusters.js';
import { PodsSettings } from '../pods-settings.js';
import { refOf, VmSteps } from './vm-steps.js';

const perLook = 500;
const lookMs = 8_000;
const beginning = '00000000-0000-0000-0000-000000000000';

/** Has VMs looked at that their cluster no longer shows as running, by a look at all of them from time to time. */
@Injectable()
export class VmWatch extends ClusterRounds {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly clusters: Clusters,
    private readonly steps: VmSteps,
    settings: PodsSettings,
  ) {
    super('the VMs', settings);
  }

  protected override get everyMs(): number {
    return this.settings.sweepMs;
  }

  protected override async due(): Promise<string[]> {
    const rows = await this.dataSource.query<{ gpuaas_id: string }[]>(`SELECT DISTINCT gpuaas_id FROM vm WHERE state = 'running'`);
    return rows.map(({ gpuaas_id }) => gpuaas_id);
  }

  protected override visit(gpuaasId: string): Promise<void> {
    return this.sweep(gpuaasId);
  }

  /** Looks at all VMs of a cluster that run. */
  async sweep(gpuaasId: string): Promise<void> {
    const driver = await this.clusters.driverOf(gpuaasId);
    for (let after = beginning; !this.stopping.signal.aborted;) {
      const rows = await this.dataSource.query<{ instanceId: string; run: number }[]>(
        `SELECT instance_id AS "instanceId", run FROM vm WHERE gpuaas_id = $1 AND state = 'running' AND instance_id > $2 ORDER BY instance_id LIMIT $3`,
        [gpuaasId, after, perLook],
      );
      const last = rows.at(-1);
      if (!last) return;
      const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(lookMs)]);
      const sights = await driver.observeVms(
        rows.map((row) => refOf(row)),
        signal,
      );
      const changed = rows.filter((_row, at) => sights[at]?.phase !== 'running').map(({ instanceId }) => instanceId);
      if (changed.length > 0) await this.transactions.run((manager) => this.steps.touch(manager, changed));
      after = last.instanceId;
    }
  }
}
