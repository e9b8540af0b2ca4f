import { defineMachine, type EventOf, type Machine, type StateOf, type TransientRule } from '@atoll/state-machine';
import { setup } from 'xstate';
import { givingBack, granting } from './rules.js';
import { WorkloadEntity } from './workload.entity.js';

/**
 * How long the workload of a pod waits for its pod: so long after the pods service last ended a pod of the same team or
 * a replica of this service last started, and never longer than the pods service tries it.
 */
export const drainingMs = { quiet: 75_000, longest: 3_600_000 };

/** `failed`: runs nowhere and occupies nothing. */
const logic = setup({
  types: {
    meta: {} as TransientRule,
    events: {} as { type: 'STARTED' | 'STOP' | 'DRAIN' | 'STOPPED' | 'UNDONE' | 'FAILED' },
  },
}).createMachine({
  id: 'workload',
  initial: 'pending',
  states: {
    pending: {
      meta: granting(150_000),
      on: { STARTED: 'running', STOP: 'stopping', DRAIN: 'draining', FAILED: 'undoing' },
    },
    running: { on: { STOP: 'stopping', DRAIN: 'draining' } },
    /**
     * The workload of a pod that somebody else than its pod ends: it waits until the pods service says that the pod is
     * gone.
     */
    draining: {
      meta: { deadlineMs: drainingMs.longest, givesUpBy: 'STOP', byTheClock: true },
      on: { STOP: 'stopping', FAILED: 'failed' },
    },
    stopping: {
      meta: givingBack(90_000),
      on: { STOPPED: 'stopped', FAILED: 'failed' },
    },
    /** It could not be started, or only in part: the completed steps are undone before the capacity is released. */
    undoing: {
      meta: givingBack(90_000),
      on: { UNDONE: 'failed', FAILED: 'failed' },
    },
    stopped: { type: 'final' },
    failed: { type: 'final' },
  },
});

export type WorkloadState = StateOf<typeof logic>;
export type WorkloadEvent = EventOf<typeof logic>;
export const workloadMachine: Machine<WorkloadEntity, WorkloadState, WorkloadEvent> = {
  entity: WorkloadEntity,
  definition: defineMachine(logic),
};
/** In SQL: those that have not ended. */
export const liveWorkload = `state NOT IN ('stopped', 'failed')`;
/** In SQL: those that end, and give back their vGPUs within the deadline of their state. */
export const givingBackWorkload = `state IN ('stopping', 'undoing')`;
/** In SQL: those whose status is not `stopped` or `failed`. */
export const listedWorkload = `${liveWorkload} AND state <> 'undoing'`;
