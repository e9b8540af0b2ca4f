import type { Workload, WorkloadStatus } from '@atoll/contracts/gpuaas';
import type { WorkloadEntity } from '../model/workload.entity.js';

/** A workload that could not be started has failed, whatever is still to be taken back on its nodes. */
function workloadStatus(state: string): WorkloadStatus {
  if (state === 'undoing') return 'failed';
  return state === 'draining' ? 'stopping' : (state as WorkloadStatus);
}

export function workloadView(row: WorkloadEntity): Workload {
  const { workloadId, subscriptionId, teamId, name, vgpus, state, failure, lastError, createdAt } = row;
  return {
    workload_id: workloadId,
    subscription_id: subscriptionId,
    team_id: teamId,
    name,
    vgpus,
    status: workloadStatus(state),
    reason: failure ?? lastError?.message ?? null,
    created_at: createdAt.toISOString(),
  };
}
