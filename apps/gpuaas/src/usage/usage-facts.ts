import { gpuUsageTold } from '@atoll/contracts/billing';
import { UsageTeller, type HeldUsage } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { skuOf } from '../sharing/pool-terms.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';

/** Publishes for billing what subscriptions hold. */
@Injectable()
export class UsageFacts {
  constructor(
    private readonly usage: UsageTeller,
    private readonly pools: PoolCatalogue,
  ) {}

  /** Each of these subscriptions holds this many vGPUs from its `enteredAt` on. */
  async tell(
    manager: EntityManager,
    held: readonly { subscription: SubscriptionEntity; vgpus: number }[],
  ): Promise<void> {
    const pools = await this.pools.poolsOf(
      held.map(({ subscription }) => subscription.poolId),
      manager,
    );
    const usage = held.flatMap(({ subscription, vgpus }): HeldUsage[] => {
      const { subscriptionId, name, profile, poolId, vRamGb } = subscription;
      const pool = pools.get(poolId);
      if (!pool) return [];
      const ofPool = { pool_name: pool.poolName, pool_profiles: pool.profiles.length };
      return [
        {
          row: subscription,
          kind: 'gpuaas_pool',
          id: subscriptionId,
          name,
          sku: skuOf(pool.board, profile),
          quantity: vgpus,
          regionId: pool.regionId,
          poolId,
          attributes: { ...ofPool, profile, v_ram_gb: Number(vRamGb) },
        },
      ];
    });
    await this.usage.tell(manager, gpuUsageTold, usage);
  }
}
