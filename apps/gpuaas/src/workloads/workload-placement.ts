import { AppError } from '@atoll/errors';
import type { Cause } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamCapacity } from '../capacity/team-capacity.js';
import { Placement } from '../leases/placement.js';
import { PoolCatalogue } from '../pools/pool-catalogue.js';
import { settledStates } from '../pools/pool-terms.js';
import type { SubscriptionEntity } from '../subscriptions/subscription.entity.js';
import type { WorkloadEntity } from './workload.entity.js';
import { liveWorkload } from './workload.machine.js';

/** The vGPUs of a subscription, as its workloads take them. */
@Injectable()
export class WorkloadPlacement {
  constructor(
    private readonly pools: PoolCatalogue,
    private readonly placement: Placement,
    private readonly capacity: TeamCapacity,
  ) {}

  /** Throws `insufficient_capacity` where fewer are free. */
  async requireFree(
    manager: EntityManager,
    { subscriptionId, vgpus: held }: Pick<SubscriptionEntity, 'subscriptionId' | 'vgpus'>,
    vgpus: number,
  ): Promise<void> {
    const [{ used = 0 } = {}] = await manager.query<{ used: number }[]>(
      `SELECT coalesce(sum(vgpus), 0)::int AS used FROM workload WHERE subscription_id = $1 AND ${liveWorkload}`,
      [subscriptionId],
    );
    if (used + vgpus <= held) return;
    throw new AppError(
      'insufficient_capacity',
      `The subscription has ${held} vGPUs, of which ${used} are in use. What would fit: ${held - used}.`,
    );
  }

  /** Throws `insufficient_capacity` where no node has as many of the subscription's own free leases. With overcommit only `occupy` can tell. */
  async requireOneNode(manager: EntityManager, { subscriptionId, poolId }: SubscriptionEntity, vgpus: number): Promise<void> {
    const { overcommit } = await this.pools.pool(poolId, manager);
    if (overcommit > 1) return;
    const [{ most = 0 } = {}] = await manager.query<{ most: number }[]>(
      `SELECT coalesce(max(free), 0)::int AS most FROM (
         SELECT count(*) AS free FROM lease JOIN gpu USING (gpu_id)
         WHERE subscription_id = $1 AND workload_id IS NULL AND lost_reason IS NULL GROUP BY node_id
       ) nodes`,
      [subscriptionId],
    );
    if (most < vgpus) throw scattered(vgpus, most);
  }

  /** Without overcommit the subscription's own leases; with it the workload takes some. Throws `insufficient_capacity`. */
  async occupy(
    manager: EntityManager,
    subscription: SubscriptionEntity,
    { workloadId, vgpus }: WorkloadEntity,
    { isThorough, isOnOneNode = false }: { isThorough: boolean; isOnOneNode?: boolean },
    cause: Cause,
  ): Promise<void> {
    const { subscriptionId, poolId, profile, teamId } = subscription;
    const pool = await this.pools.pool(poolId, manager);
    if (pool.overcommit > 1) {
      await this.placement.take(manager, pool, { subscriptionId, workloadId, profile, vgpus, isOnOneNode }, isThorough, cause);
      await this.capacity.note(manager, teamId);
      return;
    }
    if (isOnOneNode) await this.requireOneNode(manager, subscription, vgpus);
    // On GPUs that can be used now, before those that cannot.
    await manager.query(
      `WITH free AS (
         SELECT lease_id, gpu_id, node_id, gpu.state = ANY ($4) AS is_settled FROM lease JOIN gpu USING (gpu_id)
         WHERE subscription_id = $1 AND workload_id IS NULL AND lost_reason IS NULL
       ), nodes AS (
         SELECT node_id FROM free GROUP BY node_id HAVING count(*) >= $3
         ORDER BY count(*) FILTER (WHERE is_settled) >= $3 DESC, count(*), node_id LIMIT 1
       )
       UPDATE lease SET workload_id = $2 WHERE lease_id IN (
         SELECT lease_id FROM free WHERE NOT $5 OR node_id IN (SELECT node_id FROM nodes) ORDER BY is_settled DESC, gpu_id, lease_id LIMIT $3
       )`,
      [subscriptionId, workloadId, vgpus, settledStates, isOnOneNode],
    );
  }
}

function scattered(vgpus: number, most: number): AppError {
  return new AppError(
    'insufficient_capacity',
    `No node holds ${vgpus} free vGPUs of the subscription, and those of one pod are on one node. What would fit: ${most}.`,
  );
}
