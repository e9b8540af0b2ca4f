import type { Exit } from '@atoll/cluster';
import type { PodStatus } from '@atoll/contracts/pods';
import type { TransientRule } from '@atoll/state-machine';
import { backOffMs } from '@atoll/waiting';
import type { PodEntity } from './pod.entity.js';
import type { RunRow } from './run-row.js';

const longestBackOffMs = 300_000;
/** A run that lasted this long is no failure of its start: the back-off begins anew. */
const soundRunMs = 600_000;

/** Between the tries of a step. */
export const backOff = { firstMs: 500, maxMs: 8_000 };
/**
 * An hour: what is not over then, as its cluster or gpuaas is away for longer, is an outstanding end (`GivenUpEnds`),
 * and its workload holds its slices until it is over.
 */
const ending: TransientRule = { deadlineMs: 3_600_000, givesUpBy: 'FAILED', backOff, givesBack: true };

/** The state in which a run of a pod or of a VM begins. */
export const beginning = {
  meta: { deadlineMs: 1_800_000, givesUpBy: 'FAILED', backOff },
  on: { STARTED: 'running', RESTART: 'restarting', STOP: 'stopping', DELETE: 'deleting', FAILED: 'failing' },
};

/** The states of pods and of VMs after `beginning`: a start leads to the state `start`, a further run to `begin`. */
export function runStates(start: string, begin: string) {
  return {
    running: {
      meta: { isReviewed: true as const },
      on: {
        ENDED: 'restarting',
        COMPLETED: 'completing',
        RESTART: 'restarting',
        STOP: 'stopping',
        DELETE: 'deleting',
        FAILED: 'failing',
      },
    },
    /** Its last run has ended, or is being ended; the next one begins after the back-off. */
    restarting: {
      meta: { deadlineMs: 3_600_000, givesUpBy: 'FAILED', backOff },
      on: { AGAIN: begin, STOP: 'stopping', DELETE: 'deleting', FAILED: 'failing' },
    },
    stopping: { meta: ending, on: { GONE: 'stopped', DELETE: 'deleting', FAILED: 'failed' } },
    completing: { meta: ending, on: { GONE: 'stopped', DELETE: 'deleting', FAILED: 'failed' } },
    failing: { meta: ending, on: { GONE: 'failed', DELETE: 'deleting', FAILED: 'failed' } },
    deleting: { meta: ending, on: { GONE: 'deleted', FAILED: 'deleted' } },
    stopped: { on: { START: start, DELETE: 'deleting' } },
    failed: { on: { START: start, DELETE: 'deleting' } },
    deleted: { type: 'final' as const },
  };
}

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

/** When a pod or a VM was deleted, which its status does not say; null while it exists. ISO 8601. */
export function deletedAt({ state, enteredAt }: Pick<RunRow, 'state' | 'enteredAt'>): string | null {
  return state === 'deleted' ? enteredAt.toISOString() : null;
}

/** Whether no other run follows one of a pod that has ended by itself, by its restart policy. */
export function isLastRun({ restart }: Pick<PodEntity, 'restart'>, exit: Exit | null): boolean {
  return restart === 'never' || (restart === 'on_failure' && exit?.code === 0);
}

/** What follows when a run of a pod or a VM has ended by itself. */
export interface RunEnd<Row extends RunRow> {
  readonly event: 'ENDED' | 'COMPLETED' | 'FAILED';
  readonly values: Partial<Row> & { readonly endReason: string };
}

/** When the next run of a pod or a VM may begin after one that ended by itself, and those before that did. */
export function backOffAfter(
  { failures: before, startedAt }: RunRow,
  exit: Exit | null,
  firstBackOffMs: number,
  nowMs: number,
): { failures: number; nextRunAt: Date } {
  const lastedMs = exit && startedAt ? exit.at.getTime() - startedAt.getTime() : 0;
  const failures = lastedMs >= soundRunMs ? 1 : before + 1;
  const waitMs = backOffMs({ firstMs: firstBackOffMs, maxMs: longestBackOffMs, jitter: 0 }, failures);
  return { failures, nextRunAt: new Date(nowMs + waitMs) };
}
