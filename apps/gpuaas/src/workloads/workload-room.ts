import { tooFewVgpus } from '@atoll/contracts/gpuaas';
import { AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { givingBackWorkload, liveWorkload } from '../model/workload.machine.js';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { NotStarted } from './not-started.js';

/** How many vGPUs are free. */
export interface Free {
  readonly now: number;
  /** Once workloads that are ending have given back theirs. */
  readonly soon: number;
}

/** What is free of the vGPUs of subscriptions. */
@Injectable()
export class WorkloadRoom {
  constructor(private readonly pools: PoolCatalogue) {}

  /**
   * Why a workload of so many vGPUs cannot begin on a subscription; undefined: it can. With overcommit its pool may
   * still have no room.
   */
  async refusal(manager: EntityManager, held: SubscriptionEntity, vgpus: number): Promise<AppError | undefined> {
    const [free] = await this.freeOf(manager, [held]);
    return free && refusalOf(held, free, vgpus);
  }

  /** As `refusal`, of the workload of a pod, which is on one node. `NotStarted` where it can soon. */
  async refusalOfPod(manager: EntityManager, held: SubscriptionEntity, vgpus: number): Promise<AppError | undefined> {
    const [free] = await this.freeOf(manager, [held]);
    return free && refusalOfPod(held, free, vgpus, await this.freeOnOneNode(manager, held));
  }

  /** What is free of each of these, in their order. */
  async freeOf(manager: EntityManager, all: readonly SubscriptionEntity[]): Promise<Free[]> {
    const rows = await manager.query<{ subscription_id: string; used: number; ending: number }[]>(
      `SELECT subscription_id, sum(vgpus)::int AS used, coalesce(sum(vgpus) FILTER (WHERE ${givingBackWorkload}), 0)::int AS ending
       FROM workload WHERE subscription_id = ANY ($1::bigint[]) AND ${liveWorkload} GROUP BY 1`,
      [all.map(({ subscriptionId }) => subscriptionId)],
    );
    const byId = new Map(rows.map((row) => [row.subscription_id, row]));
    return all.map(({ subscriptionId, vgpus }) => {
      const { used = 0, ending = 0 } = byId.get(subscriptionId) ?? {};
      return { now: vgpus - used, soon: vgpus - used + ending };
    });
  }

  /** The most leases of a subscription that are free on one node. undefined with overcommit: it has none of its own. */
  private async freeOnOneNode(
    manager: EntityManager,
    { subscriptionId, poolId }: SubscriptionEntity,
  ): Promise<Free | undefined> {
    const { overcommit } = await this.pools.pool(poolId, manager);
    if (overcommit > 1) return undefined;
    const [{ now = 0, soon = 0 } = {}] = await manager.query<Partial<Free>[]>(
      `SELECT coalesce(max(now), 0)::int AS now, coalesce(max(soon), 0)::int AS soon FROM (
         SELECT count(*) FILTER (WHERE workload_id IS NULL) AS now, count(*) AS soon FROM lease JOIN gpu USING (gpu_id)
         WHERE subscription_id = $1 AND lost_reason IS NULL AND NOT is_added AND (workload_id IS NULL
           OR workload_id IN (SELECT workload_id FROM workload WHERE subscription_id = $1 AND ${liveWorkload} AND ${givingBackWorkload})) GROUP BY node_id
       ) nodes`,
      [subscriptionId],
    );
    return { now, soon };
  }
}

/** As `WorkloadRoom.refusal`. */
export function refusalOf({ vgpus: held }: SubscriptionEntity, free: Free, vgpus: number): AppError | undefined {
  return vgpus > free.now ? tooFewVgpus(held, held - free.now) : undefined;
}

/** As `WorkloadRoom.refusalOfPod`. */
export function refusalOfPod(
  { vgpus: held }: SubscriptionEntity,
  free: Free,
  vgpus: number,
  onOneNode: Free = free,
): AppError | undefined {
  if (vgpus > free.soon) return tooFewVgpus(held, held - free.soon);
  if (vgpus > onOneNode.soon) return scattered(vgpus, onOneNode.soon);
  if (vgpus <= free.now && vgpus <= onOneNode.now) return undefined;
  return new NotStarted('waiting', 'Waiting for vGPUs of its subscription to be released.');
}

function scattered(vgpus: number, most: number): AppError {
  return new AppError(
    'insufficient_capacity',
    `No node holds ${vgpus} free vGPUs of the subscription, and a pod must fit on one node. Available: ${most}.`,
  );
}
