import { Transactions } from '@atoll/database';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Clusters } from '../cluster/clusters.js';
import { PodsSettings } from '../pods-settings.js';
import { refOf, VmSteps } from './vm-steps.js';

const perLook = 500;
const lookMs = 8_000;
const beginning = '00000000-0000-0000-0000-000000000000';

/** Has VMs looked at that their cluster no longer shows as running, by a look at all of them from time to time. */
@Injectable()
export class VmWatch implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(VmWatch.name);
  private readonly stopping = new AbortController();
  private readonly looking = new Map<string, Promise<void>>();
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> = Promise.resolve();

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly clusters: Clusters,
    private readonly steps: VmSteps,
    private readonly settings: PodsSettings,
  ) {}

  onApplicationBootstrap(): void {
    if (this.settings.workers.isIdle) return;
    this.timer = setInterval(() => {
      this.round = this.round.then(() => this.go());
    }, this.settings.sweepMs);
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    await this.round;
    await Promise.all(this.looking.values());
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

  /** One cluster that hangs is looked at no second time meanwhile, and keeps no other from its look. */
  private async go(): Promise<void> {
    try {
      const rows = await this.dataSource.query<{ gpuaas_id: string }[]>(`SELECT DISTINCT gpuaas_id FROM vm WHERE state = 'running'`);
      for (const { gpuaas_id } of rows) {
        if (this.looking.has(gpuaas_id) || this.stopping.signal.aborted) continue;
        const task = this.sweep(gpuaas_id)
          .catch((error: unknown) => this.warn(`Cannot look at the VMs of GPU service ${gpuaas_id}; retrying`, error))
          .finally(() => this.looking.delete(gpuaas_id));
        this.looking.set(gpuaas_id, task);
      }
    } catch (error) {
      this.warn('Cannot look at the VMs; retrying', error);
    }
  }

  private warn(what: string, error: unknown): void {
    if (!this.stopping.signal.aborted) this.logger.warn(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
