import type { Exit } from '@atoll/cluster';
import type { RunRow } from '../model/run-row.js';

/**
 * When a run that was looked at too late has ended: by the clock of its cluster, but not before the platform has seen
 * it running, from when it is billed. null where the cluster does not know.
 */
export function endOfRun({ enteredAt }: Pick<RunRow, 'enteredAt'>, exit: Exit | null): Date | null {
  return exit && new Date(Math.max(exit.at.getTime(), enteredAt.getTime()));
}

/**
 * Since when what a row has come to counts for billing, by the row after its transition: since then; or, where it has
 * just left `running` since its run was seen to be over, since the end of that run.
 */
export function countsSince(from: string | null, { enteredAt, endedAt }: Pick<RunRow, 'enteredAt' | 'endedAt'>): Date {
  return from === 'running' && endedAt && endedAt < enteredAt ? endedAt : enteredAt;
}
