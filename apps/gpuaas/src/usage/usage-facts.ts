import { gpuUsageTold } from '@atoll/contracts';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { PoolCatalogue } from '../pools/pool-catalogue.js';
import { skuOf } from '../pools/pool-terms.js';
import type { SubscriptionEntity } from '../subscriptions/subscription.entity.js';

/** Tells billing what a subscription holds, from the instant of a transition on, in the transaction of that transition: so each once, and none without. */
@Injectable()
export class UsageFacts {
  constructor(
    private readonly outbox: Outbox,
    private readonly pools: PoolCatalogue,
  ) {}

  /** From the subscription's `enteredAt` on it holds this many vGPUs. The fact is one for ever: its id is the transition's. */
  async tell(manager: EntityManager, subscription: SubscriptionEntity, vgpus: number): Promise<void> {
    const { subscriptionId, enteredAt, revision, name, profile, teamId, workspaceId, poolId, vRamGb } = subscription;
    const pool = await this.pools.pool(poolId, manager);
    const fact = {
      id: `subscription:${subscriptionId}:${revision}`,
      time: enteredAt.toISOString(),
      sequence: revision,
      resource_id: `gpuaas_pool:${subscriptionId}`,
      ...(name !== null && { resource_name: name }),
      kind: 'gpuaas_pool' as const,
      sku: skuOf(pool.board, profile),
      quantity: String(vgpus),
      team_id: teamId,
      workspace_id: workspaceId,
      region_id: pool.regionId,
      pool_id: poolId,
      attributes: { pool_name: pool.poolName, pool_profiles: pool.profiles.length, profile, v_ram_gb: Number(vRamGb) },
    };
    await this.outbox.add(manager, gpuUsageTold, { facts: [fact] });
  }
}
