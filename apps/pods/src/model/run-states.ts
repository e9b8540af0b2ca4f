import type { PodStatus } from '@atoll/contracts/pods';

/** Of pods and of VMs: the states in which their run ends, or is being ended. */
export const endings: ReadonlySet<string> = new Set(['stopping', 'completing', 'failing', 'deleting']);

/** Of pods and of VMs: those that rest until somebody starts or deletes them. */
export const atRest: ReadonlySet<string> = new Set(['stopped', 'failed']);

/** The status that is shown for a state of a pod or of a VM; of a VM never `pulling`. */
export function runStatus(state: string): PodStatus {
  if (state === 'starting' || state === 'restarting') return 'pending';
  if (endings.has(state)) return 'stopping';
  return state === 'deleted' ? 'stopped' : (state as PodStatus);
}
