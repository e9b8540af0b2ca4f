import type { Subscription } from '@atoll/contracts/gpuaas';
import { isResizing, statusOf } from '../model/subscription-status.js';
import type { KnownPool } from '../sharing/pool-catalogue.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';

/** The row on the wire. */
export function subscriptionView(
  row: SubscriptionEntity,
  pool: Pick<KnownPool, 'poolName' | 'gpuaasId' | 'regionId'>,
): Subscription {
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
    reason: status === 'active' ? null : (row.failure ?? row.lastError?.message ?? null),
    profile: row.profile,
    v_ram_gb: Number(row.vRamGb),
    vgpus_allocated: status === 'unsubscribed' || status === 'failed' ? 0 : row.vgpus,
    resize: resizeOf(row),
    created_at: row.createdAt.toISOString(),
  };
}

function resizeOf({ state, resizeVgpus, resizeFailure, lastError }: SubscriptionEntity): Subscription['resize'] {
  if (resizeVgpus === null || statusOf(state) !== 'active') return null;
  if (!isResizing(state)) return { vgpus: resizeVgpus, status: 'failed', reason: resizeFailure };
  return { vgpus: resizeVgpus, status: 'pending', reason: resizeFailure ?? lastError?.message ?? null };
}
