import type { Exit } from '@atoll/cluster';
import type { PodEntity } from '../model/pod.entity.js';
import { backOffAfter, isLastRun, type RunEnd } from '../model/run-states.js';

/** The reason of a pod whose workload was ended by somebody else than this service. */
export const endOfSubscription = 'Its subscription ended.';

/**
 * What follows when the run of a pod has ended by itself, at `nowMs` by the clock of the database; `exit` is null where
 * its container was removed from outside.
 */
export function afterEnd(pod: PodEntity, exit: Exit | null, firstBackOffMs: number, nowMs: number): RunEnd<PodEntity> {
  const endReason = reasonOf(exit);
  const exitCode = exit?.code ?? null;
  if (isLastRun(pod, exit)) return { event: exitCode === 0 ? 'COMPLETED' : 'FAILED', values: { exitCode, endReason } };
  return { event: 'ENDED', values: { exitCode, endReason, ...backOffAfter(pod, exit, firstBackOffMs, nowMs) } };
}

function reasonOf(exit: Exit | null): string {
  if (!exit) return 'The container was removed from outside the platform.';
  if (exit.outOfMemory === 'yes') return 'Its process was killed: out of memory.';
  if (exit.outOfMemory === 'probably') return 'Its process was killed: probably out of memory.';
  if (exit.reason) return exit.reason.slice(0, 400);
  return exit.code === null ? 'Its process ended.' : `Its process ended with exit code ${exit.code}.`;
}
