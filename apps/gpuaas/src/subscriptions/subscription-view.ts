import type { Subscription, SubscriptionStatus } from '@atoll/contracts';
import type { KnownPool } from '../pools/pool-catalogue.js';
import type { SubscriptionEntity } from './subscription.entity.js';

type Row = Pick<
  SubscriptionEntity,
  | 'subscriptionId'
  | 'teamId'
  | 'workspaceId'
  | 'name'
  | 'poolId'
  | 'state'
  | 'lastError'
  | 'failure'
  | 'profile'
  | 'vRamGb'
  | 'vgpus'
  | 'createdAt'
>;

/** The row on the wire. */
export function subscriptionView(row: Row, pool: Pick<KnownPool, 'poolName' | 'gpuaasId' | 'regionId'>): Subscription {
  const status = statusOf(row.state);
  return {
    subscription_id: row.subscriptionId,
    team_id: row.teamId,
    workspace_id: row.workspaceId,
    name: row.name,
    pool_id: row.poolId,
    pool_name: pool.poolName,
    gpuaas_id: pool.gpuaasId,
    region_id: pool.regionId,
    status,
    reason: row.failure ?? row.lastError?.message ?? null,
    profile: row.profile,
    v_ram_gb: Number(row.vRamGb),
    vgpus_allocated: status === 'unsubscribed' || status === 'failed' ? 0 : row.vgpus,
    created_at: row.createdAt.toISOString(),
  };
}

/** A subscription that could not be granted has failed, whatever is still to be taken back on its nodes. */
export function statusOf(state: string): SubscriptionStatus {
  return state === 'undoing' ? 'failed' : (state as SubscriptionStatus);
}
