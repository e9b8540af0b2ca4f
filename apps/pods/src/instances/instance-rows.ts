import type { Instance } from '@atoll/contracts/pods';
import { runStatus } from '../model/run-states.js';

/** A pod, a VM or a bare-metal host. */
export interface InstanceRow {
  id: string;
  name: string;
  kind: Instance['kind'];
  state: string;
  team_id: string;
  workspace_id: string;
  region_id: string | null;
  auto_restart: boolean | null;
  created_at: Date;
  deleted_at: Date | null;
}

/** The status that is shown for a state of the machine of its kind; that of a bare-metal host comes as it is. */
export function instanceStatus({ kind, state }: Pick<InstanceRow, 'kind' | 'state'>): string {
  return kind === 'baremetal' ? state : runStatus(state);
}

const deletedAt = `CASE state WHEN 'deleted' THEN entered_at END AS deleted_at`;

/** SQL: those of which this holds, with what has ended where all are wanted. */
export function instancesWhere(condition: string, isWhole: boolean): string {
  const kept = isWhole ? '' : ` AND state <> 'deleted'`;
  const hosts = isWhole ? '' : ` AND status NOT IN ('Failed', 'Released', 'Cancelled')`;
  return `SELECT pod_id AS id, pod_name AS name, 'pod' AS kind, state, team_id, workspace_id, region_id, NULL::boolean AS auto_restart, created_at, ${deletedAt} FROM pod
    WHERE ${condition}${kept}
  UNION ALL SELECT instance_id AS id, name, 'vm', state, team_id, workspace_id, region_id, auto_restart, created_at, ${deletedAt} FROM vm
    WHERE ${condition}${kept}
  UNION ALL SELECT instance_id AS id, name, 'baremetal', status, team_id, workspace_id, region_id, NULL, created_at, NULL FROM baremetal_instance
    WHERE ${condition}${hosts}`;
}
