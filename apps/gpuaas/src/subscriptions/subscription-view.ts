import type { Subscription, SubscriptionStatus } from '@atoll/contracts';
import type { KnownPool } from '../pools/pool-catalogue.js';
import type { SubscriptionEntity } from './subscription.entity.js';

type Row = Pick<
  SubscriptionEntity,
  'subscriptionId' | 'teamId' | 'workspaceId' | 'name' | 'poolId' | 'state' | 'lastError' | 'profile' | 'vRamGb' | 'vgpus' | 'createdAt'
>;

/** The row on the wire. */
export function subscriptionView(row: Row, pool: Pick<KnownPool, 'poolName' | 'gpuaasId' | 'regionId'>): Subscription {
  const hasEnded = row.state === 'unsubscribed' || row.state === 'failed';
  return {
    subscription_id: row.subscriptionId,
    team_id: row.teamId,
    workspace_id: row.workspaceId,
    name: row.name,
    pool_id: row.poolId,
    pool_name: pool.poolName,
    gpuaas_id: pool.gpuaasId,
    region_id: pool.regionId,
    status: statusOf(row.state),
    reason: row.lastError?.message ?? null,
    profile: row.profile,
    v_ram_gb: Number(row.vRamGb),
    vgpus_allocated: hasEnded ? 0 : row.vgpus,
    created_at: row.createdAt.toISOString(),
  };
}

/** What could not be granted is on its way out, as what is given back is. */
export function statusOf(state: string): SubscriptionStatus {
  return state === 'undoing' ? 'unsubscribing' : (state as SubscriptionStatus);
}
