import { defineMachine, type EventOf, type Machine, type StateOf, type StateRule } from '@atoll/state-machine';
import { setup } from 'xstate';
import { PodEntity } from './pod.entity.js';
import { backOff, beginning, runStates } from './run-states.js';

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
    pulling: beginning,
    ...runStates('pending', 'pulling'),
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
