import { gpuUsageTold, type UsageTold } from '@atoll/contracts/billing';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { PoolCatalogue, type KnownPool } from '../sharing/pool-catalogue.js';
import { skuOf } from '../sharing/pool-terms.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';

/**
 * Tells billing what a subscription holds, from the instant of a transition on, in the transaction of that transition:
 * so each once, and none without.
 */
@Injectable()
export class UsageFacts {
  constructor(
    private readonly outbox: Outbox,
    private readonly pools: PoolCatalogue,
  ) {}

  /**
   * Publishes that each of these subscriptions, at most 1000, holds this many vGPUs from its `enteredAt` on. The id of
   * a fact is that of the transition, so that it counts once, however often it is published.
   */
  async tell(
    manager: EntityManager,
    held: readonly { subscription: SubscriptionEntity; vgpus: number }[],
  ): Promise<void> {
    const pools = await this.pools.poolsOf(
      held.map(({ subscription }) => subscription.poolId),
      manager,
    );
    const facts = held.flatMap(({ subscription, vgpus }) => {
      const pool = pools.get(subscription.poolId);
      return pool ? [factOf(subscription, vgpus, pool)] : [];
    });
    await this.outbox.add(manager, gpuUsageTold, { facts });
  }
}

function factOf(subscription: SubscriptionEntity, vgpus: number, pool: KnownPool): UsageTold['facts'][number] {
  const { subscriptionId, enteredAt, revision, name, profile, teamId, workspaceId, poolId, vRamGb } = subscription;
  return {
    id: `subscription:${subscriptionId}:${revision}`,
    time: enteredAt.toISOString(),
    sequence: revision,
    resource_id: `gpuaas_pool:${subscriptionId}`,
    ...(name !== null && { resource_name: name }),
    kind: 'gpuaas_pool',
    sku: skuOf(pool.board, profile),
    quantity: String(vgpus),
    team_id: teamId,
    workspace_id: workspaceId,
    region_id: pool.regionId,
    pool_id: poolId,
    attributes: { pool_name: pool.poolName, pool_profiles: pool.profiles.length, profile, v_ram_gb: Number(vRamGb) },
  };
}
