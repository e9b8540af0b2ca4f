import type { Pod } from '@atoll/contracts/pods';
import type { PodEntity } from '../model/pod.entity.js';
import type { PodState } from '../model/pod.machine.js';
import { deletedAt, runStatus } from '../model/run-states.js';
import { shownError } from '../model/failing-row.js';

/** The states in which the longest duration of a start is still to end. */
const endsLater: ReadonlySet<string> = new Set<PodState>(['pulling', 'running', 'restarting']);

/**
 * SQL: the columns of `row`, a pod, that are shown. A listing reads these alone: a command and an environment have up
 * to 128 KiB together.
 */
export const shownColumns = `row.pod_id, row.pod_name, row.name, row.team_id, row.workspace_id, row.subscription_id,
  row.gpuaas_id, row.region_id, row.image, row.vgpus, row.profile, row.state, row.last_error, row.failure, row.end_reason,
  row.exit_code, row.restarts, row.volumes, row.max_duration_minutes, row.idle_stop, row.stops_at, row.created_at,
  row.started_at, row.entered_at`;

export function podView(pod: PodEntity): Pod {
  return {
    pod_id: pod.podId,
    pod_name: pod.podName,
    name: pod.name,
    team_id: pod.teamId,
    workspace_id: pod.workspaceId,
    subscription_id: pod.subscriptionId,
    gpuaas_id: pod.gpuaasId,
    region_id: pod.regionId,
    image: pod.image,
    vgpus: pod.vgpus,
    profile: pod.profile,
    status: runStatus(pod.state),
    reason: shownError(pod)?.message ?? pod.endReason,
    exit_code: pod.exitCode,
    restarts: pod.restarts,
    volumes: pod.volumes,
    max_duration_minutes: pod.maxDurationMinutes,
    idle_stop: pod.idleStop,
    stops_at: endsLater.has(pod.state) ? (pod.stopsAt?.toISOString() ?? null) : null,
    created_at: pod.createdAt.toISOString(),
    started_at: pod.startedAt?.toISOString() ?? null,
    deleted_at: deletedAt(pod),
  };
}
