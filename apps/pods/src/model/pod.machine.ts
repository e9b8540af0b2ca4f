import {
  defineMachine,
  type EventOf,
  type Machine,
  type StateOf,
  type StateRule,
  type TransientRule,
} from '@atoll/state-machine';
import { setup } from 'xstate';
import { PodEntity } from './pod.entity.js';

const backOff = { firstMs: 500, maxMs: 8_000 };
/**
 * An hour: what is not over then, as its cluster or gpuaas is away for longer, is an outstanding end (`GivenUpEnds`),
 * and its workload holds its slices until it is over.
 */
const ending: TransientRule = { deadlineMs: 3_600_000, givesUpBy: 'FAILED', backOff, givesBack: true };

/**
 * A pod, from its start to its end, again and again. One start is one workload, and any number of runs: `run` counts
 * containers.
 *
 * `failing`, `completing` and `stopping` end the run and give back its workload, for the reason that their names say.
 */
const logic = setup({
  types: {
    meta: {} as StateRule,
    events: {} as {
      type:
        | 'PLACED'
        | 'STARTED'
        | 'ENDED'
        | 'COMPLETED'
        | 'AGAIN'
        | 'START'
        | 'STOP'
        | 'RESTART'
        | 'DELETE'
        | 'GONE'
        | 'FAILED';
    },
  },
}).createMachine({
  id: 'pod',
  initial: 'pending',
  states: {
    /** It waits for its subscription and for a GPU. */
    pending: {
      meta: { deadlineMs: 600_000, givesUpBy: 'FAILED', backOff },
      on: { PLACED: 'pulling', STOP: 'stopping', DELETE: 'deleting', FAILED: 'failing' },
    },
    pulling: {
      meta: { deadlineMs: 1_800_000, givesUpBy: 'FAILED', backOff },
      on: { STARTED: 'running', RESTART: 'restarting', STOP: 'stopping', DELETE: 'deleting', FAILED: 'failing' },
    },
    running: {
      meta: { isReviewed: true },
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
      on: { AGAIN: 'pulling', STOP: 'stopping', DELETE: 'deleting', FAILED: 'failing' },
    },
    stopping: { meta: ending, on: { GONE: 'stopped', DELETE: 'deleting', FAILED: 'failed' } },
    completing: { meta: ending, on: { GONE: 'stopped', DELETE: 'deleting', FAILED: 'failed' } },
    failing: { meta: ending, on: { GONE: 'failed', DELETE: 'deleting', FAILED: 'failed' } },
    deleting: { meta: ending, on: { GONE: 'deleted', FAILED: 'deleted' } },
    stopped: { on: { START: 'pending', DELETE: 'deleting' } },
    failed: { on: { START: 'pending', DELETE: 'deleting' } },
    deleted: { type: 'final' },
  },
});

export type PodState = StateOf<typeof logic>;
export type PodEvent = EventOf<typeof logic>;
export const podMachine: Machine<PodEntity, PodState, PodEvent> = {
  entity: PodEntity,
  definition: defineMachine(logic),
};

/** In SQL: those that have a workload or will ask for one. One that ends gives its own back. */
export const holdingPod = `state IN ('pending', 'pulling', 'running', 'restarting')`;

/** In SQL: those of which a container may exist, or may come to be. */
export const livePod = `state NOT IN ('stopped', 'failed', 'deleted')`;

/** In SQL: those that rest until somebody starts or deletes them. */
export const atRestPod = `state IN ('stopped', 'failed')`;
