import type { Workload, WorkloadStatus } from '@atoll/contracts';
import type { WorkloadEntity } from './workload.entity.js';

export function workloadStatus(state: string): WorkloadStatus {
  return state === 'undoing' || state === 'draining' ? 'stopping' : (state as WorkloadStatus);
}

export function workloadView({ workloadId, subscriptionId, teamId, name, vgpus, state, lastError, createdAt }: WorkloadEntity): Workload {
  return {
    workload_id: workloadId,
    subscription_id: subscriptionId,
    team_id: teamId,
    name,
    vgpus,
    status: workloadStatus(state),
    reason: lastError?.message ?? null,
    created_at: createdAt.toISOString(),
  };
}
