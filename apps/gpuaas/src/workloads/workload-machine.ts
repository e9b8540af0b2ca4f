import { DurableMachine, touchRows, type Outcome, type Passage, type StepContext } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { TeamCapacity } from '../capacity/team-capacity.js';
import { NodeDriver } from '../driver/node-driver.js';
import { heldBy, noteInstances, type HeldLease } from '../leases/lease-store.js';
import { readiness } from '../leases/readiness.js';
import { Placement } from '../leases/placement.js';
import { PoolCatalogue } from '../pools/pool-catalogue.js';
import { WorkloadEntity } from './workload.entity.js';
import { liveWorkload, workloadDefinition, type WorkloadEvent, type WorkloadState } from './workload.machine.js';

type Found = Outcome<WorkloadEntity, WorkloadEvent>;

/** Workloads: running once their GPUs are where they are to be, stopped when the nodes say so. */
@Injectable()
export class WorkloadMachine extends DurableMachine<WorkloadEntity, WorkloadState, WorkloadEvent> {
  constructor(
    dataSource: DataSource,
    private readonly driver: NodeDriver,
    private readonly pools: PoolCatalogue,
    private readonly placement: Placement,
    private readonly capacity: TeamCapacity,
  ) {
    super(dataSource, workloadDefinition, WorkloadEntity);
  }

  async step(workload: WorkloadEntity, { signal }: StepContext): Promise<Found> {
    const leases = await this.leasesOf(workload.workloadId);
    if (workload.state !== 'pending' && workload.state !== 'stopping' && workload.state !== 'undoing') return 'rest';
    if (workload.state === 'pending') {
      const verdict = readiness(leases, workload.vgpus);
      if (verdict) return verdict;
      await noteInstances((sql, values) => this.query(sql, values), await this.driver.occupy(leases, signal));
      return { event: 'STARTED' };
    }
    await this.driver.vacate(leases, signal);
    if (workload.state === 'stopping') return { event: 'STOPPED' };
    return { event: 'UNDONE', ...(workload.lastError && { reason: workload.lastError }) };
  }

  /** The workloads of a subscription that have not ended, locked in the order of their ids. The subscription's row is locked by the transaction. */
  async lockLive(manager: EntityManager, subscriptionId: string): Promise<WorkloadEntity[]> {
    const rows = await manager.query<object[]>(
      `SELECT * FROM workload WHERE subscription_id = $1 AND ${liveWorkload} ORDER BY workload_id FOR NO KEY UPDATE`,
      [subscriptionId],
    );
    return rows.map((row) => this.rowOf(row));
  }

  protected override async entered(
    manager: EntityManager,
    workload: WorkloadEntity,
    { event, cause }: Passage<WorkloadState, WorkloadEvent>,
  ): Promise<void> {
    const { workloadId, subscriptionId, teamId } = workload;
    if (workload.state !== 'stopped' && workload.state !== 'failed') return;
    // A node that did not give back what was held is looked after before anybody else comes there.
    if (event === 'FAILED') {
      await this.placement.distrust(
        manager,
        'workload_id',
        workloadId,
        workload.lastError?.message ?? 'It did not give back what was held.',
        cause,
      );
    }
    const [pool] = await manager.query<{ pool_id: string }[]>('SELECT pool_id FROM subscription WHERE subscription_id = $1', [
      subscriptionId,
    ]);
    const { overcommit } = await this.pools.pool(pool?.pool_id ?? '', manager);
    if (overcommit > 1) {
      await this.placement.release(manager, 'workload_id', workloadId, cause);
      await this.capacity.note(manager, teamId);
    } else {
      await manager.query('UPDATE lease SET workload_id = NULL WHERE workload_id = $1', [workloadId]);
    }
    await touchRows(manager, 'subscription', 'subscription_id', [subscriptionId], ['unsubscribing']);
  }

  private leasesOf(workloadId: string): Promise<HeldLease[]> {
    return heldBy((sql, values) => this.query(sql, values), 'workload_id', workloadId);
  }
}
