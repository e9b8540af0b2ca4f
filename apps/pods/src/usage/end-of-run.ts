import type { Exit } from '@atoll/cluster';
import type { MachineRow } from '@atoll/state-machine';

/**
 * When a run that was looked at too late has ended: by the clock of its cluster, but not before the platform has seen it running, from when it is
 * billed. null where the cluster does not know.
 */
export function endOfRun({ enteredAt }: Pick<MachineRow, 'enteredAt'>, exit: Exit | null): Date | null {
  return exit && new Date(Math.max(exit.at.getTime(), enteredAt.getTime()));
}

/** Until when a run is billed that the platform has just seen to be over, by the row after that. */
export function billedUntil({ enteredAt, endedAt }: Pick<MachineRow, 'enteredAt'> & { endedAt: Date | null }): Date {
  return endedAt && endedAt < enteredAt ? endedAt : enteredAt;
}
