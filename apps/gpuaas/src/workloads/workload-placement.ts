import { tooFewVgpus } from '@atoll/contracts/gpuaas';
import { AppError, isAppError } from '@atoll/errors';
import type { Cause } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamCapacity } from '../capacity/team-capacity.js';
import { Allocation } from '../allocation/allocation.js';
import { PoolCatalogue, type KnownPool } from '../sharing/pool-catalogue.js';
import { settledStates } from '../sharing/pool-terms.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import type { WorkloadEntity } from '../model/workload.entity.js';
import { WorkloadSteps } from '../subscriptions/workload-steps.js';
import { givingBackWorkload, liveWorkload } from '../model/workload.machine.js';

export type NewWorkload = Pick<WorkloadEntity, 'subscriptionId' | 'teamId' | 'name' | 'vgpus'> &
  Partial<Pick<WorkloadEntity, 'podId' | 'podStart'>>;

/** The vGPUs of a subscription, as its workloads take them. */
@Injectable()
export class WorkloadPlacement {
  constructor(
    private readonly pools: PoolCatalogue,
    private readonly allocation: Allocation,
    private readonly workloads: WorkloadSteps,
    private readonly capacity: TeamCapacity,
  ) {}

  /**
   * Inserts a workload of a subscription that the transaction has locked, with its leases: without overcommit the
   * subscription's own; with it some of its own, or a place in the queue. That of a pod is on one node. Throws
   * `insufficient_capacity`, saying what would be accepted.
   */
  async begin(manager: EntityManager, subscription: SubscriptionEntity, values: NewWorkload, cause: Cause): Promise<WorkloadEntity> {
    await this.requireFree(manager, subscription, values.vgpus);
    const isOnOneNode = values.podId != null;
    const pool = await this.pools.pool(subscription.poolId, manager);
    const workload = await (pool.overcommit > 1
      ? this.beginEntitled(manager, pool, subscription, values, isOnOneNode, cause)
      : this.beginOnHeld(manager, subscription, values, isOnOneNode, cause));
    await this.workloads.assignLanes(manager, [workload.workloadId]);
    return workload;
  }

  /**
   * Whether a pod may have so many, `now` or `soon`: once workloads that are ending have given back theirs. Throws
   * `insufficient_capacity`, saying what would be accepted. With overcommit only `begin` can tell.
   */
  async roomForPod(manager: EntityManager, subscription: SubscriptionEntity, vgpus: number): Promise<'now' | 'soon'> {
    try {
      await this.requireForPod(manager, subscription, vgpus);
      return 'now';
    } catch (error) {
      if (!isAppError(error) || error.code !== 'insufficient_capacity') throw error;
      await this.requireForPod(manager, subscription, vgpus, true);
      return 'soon';
    }
  }

  private async requireForPod(manager: EntityManager, subscription: SubscriptionEntity, vgpus: number, isSoon = false): Promise<void> {
    await this.requireFree(manager, subscription, vgpus, isSoon);
    await this.requireOneNode(manager, subscription, vgpus, isSoon);
  }

  /** Throws `insufficient_capacity` where fewer are free, or will be soon: what workloads that are ending give back. */
  async requireFree(
    manager: EntityManager,
    { subscriptionId, vgpus: held }: Pick<SubscriptionEntity, 'subscriptionId' | 'vgpus'>,
    vgpus: number,
    isSoon = false,
  ): Promise<void> {
    const [{ used = 0 } = {}] = await manager.query<{ used: number }[]>(
      `SELECT coalesce(sum(vgpus), 0)::int AS used FROM workload WHERE subscription_id = $1 AND ${liveWorkload} AND NOT ($2 AND ${givingBackWorkload})`,
      [subscriptionId, isSoon],
    );
    if (used + vgpus <= held) return;
    throw tooFewVgpus(held, used);
  }

  /**
   * Throws `insufficient_capacity` where no node has as many of the subscription's own free leases. With overcommit only
   * `begin` can tell.
   */
  private async requireOneNode(
    manager: EntityManager,
    { subscriptionId, poolId }: SubscriptionEntity,
    vgpus: number,
    isSoon = false,
  ): Promise<void> {
    const { overcommit } = await this.pools.pool(poolId, manager);
    if (overcommit > 1) return;
    const [{ most = 0 } = {}] = await manager.query<{ most: number }[]>(
      `SELECT coalesce(max(free), 0)::int AS most FROM (
         SELECT count(*) AS free FROM lease JOIN gpu USING (gpu_id)
         WHERE subscription_id = $1 AND lost_reason IS NULL AND NOT is_added AND (workload_id IS NULL
           OR workload_id IN (SELECT workload_id FROM workload WHERE subscription_id = $1 AND $2 AND ${liveWorkload} AND ${givingBackWorkload})) GROUP BY node_id
       ) nodes`,
      [subscriptionId, isSoon],
    );
    if (most < vgpus) throw scattered(vgpus, most);
  }

  /** With overcommit a workload takes leases of its own, or waits for them. */
  private async beginEntitled(
    manager: EntityManager,
    pool: KnownPool,
    { subscriptionId, profile, teamId }: SubscriptionEntity,
    values: NewWorkload,
    isOnOneNode: boolean,
    cause: Cause,
  ): Promise<WorkloadEntity> {
    const [admission] = await this.allocation.decide(manager, pool, [{ teamId, profile, vgpus: values.vgpus, isOnOneNode }]);
    if (!admission || isAppError(admission)) throw admission ?? new Error('A request was not decided on.');
    const lastError = admission.reason && { ...admission.reason, at: new Date().toISOString() };
    const workload = await this.workloads.insert(manager, { ...values, lastError }, cause);
    const holder = { subscriptionId, workloadId: workload.workloadId, isAdded: false };
    await this.allocation.hold(manager, pool, [{ admission, holder, cause }]);
    await this.capacity.note(manager, [teamId]);
    return workload;
  }

  /** Without overcommit it takes leases of its subscription: on GPUs that can be used now, before those that cannot. */
  private async beginOnHeld(
    manager: EntityManager,
    subscription: SubscriptionEntity,
    values: NewWorkload,
    isOnOneNode: boolean,
    cause: Cause,
  ): Promise<WorkloadEntity> {
    if (isOnOneNode) await this.requireOneNode(manager, subscription, values.vgpus);
    const workload = await this.workloads.insert(manager, values, cause);
    await manager.query(
      `WITH free AS (
         SELECT lease_id, gpu_id, node_id, gpu.state = ANY ($4) AS is_settled FROM lease JOIN gpu USING (gpu_id)
         WHERE subscription_id = $1 AND workload_id IS NULL AND lost_reason IS NULL AND NOT is_added
       ), nodes AS (
         SELECT node_id FROM free GROUP BY node_id HAVING count(*) >= $3
         ORDER BY count(*) FILTER (WHERE is_settled) >= $3 DESC, count(*), node_id LIMIT 1
       )
       UPDATE lease SET workload_id = $2 WHERE lease_id IN (
         SELECT lease_id FROM free WHERE NOT $5 OR node_id IN (SELECT node_id FROM nodes) ORDER BY is_settled DESC, gpu_id, lease_id LIMIT $3
       )`,
      [subscription.subscriptionId, workload.workloadId, values.vgpus, settledStates, isOnOneNode],
    );
    return workload;
  }
}

function scattered(vgpus: number, most: number): AppError {
  return new AppError(
    'insufficient_capacity',
    `No node holds ${vgpus} free vGPUs of the subscription, and those of one pod are on one node. Available: ${most}.`,
  );
}
