import type { Exit } from '@atoll/cluster';
import type { PodStatus } from '@atoll/contracts/pods';
import type { PodEntity } from './pod.entity.js';

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

/** Whether no other run follows one of a pod that has ended by itself, by its restart policy. */
export function isLastRun({ restart }: Pick<PodEntity, 'restart'>, exit: Exit | null): boolean {
  return restart === 'never' || (restart === 'on_failure' && exit?.code === 0);
}
