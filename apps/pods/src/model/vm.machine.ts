import {
  defineMachine,
  type EventOf,
  type Machine,
  type StateOf,
  type StateRule,
  type TransientRule,
} from '@atoll/state-machine';
import { setup } from 'xstate';
import { VmEntity } from './vm.entity.js';

const backOff = { firstMs: 500, maxMs: 8_000 };
/** An hour, as for pods: what is not over then is an outstanding end (`GivenUpEnds`). */
const ending: TransientRule = { deadlineMs: 3_600_000, givesUpBy: 'FAILED', backOff, givesBack: true };

/** A VM, from its start to its end, again and again. It is billed in `running` alone. */
const logic = setup({
  types: {
    meta: {} as StateRule,
    events: {} as {
      type: 'STARTED' | 'ENDED' | 'COMPLETED' | 'AGAIN' | 'START' | 'STOP' | 'RESTART' | 'DELETE' | 'GONE' | 'FAILED';
    },
  },
}).createMachine({
  id: 'vm',
  initial: 'starting',
  states: {
    starting: {
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
      on: { AGAIN: 'starting', STOP: 'stopping', DELETE: 'deleting', FAILED: 'failing' },
    },
    stopping: { meta: ending, on: { GONE: 'stopped', DELETE: 'deleting', FAILED: 'failed' } },
    completing: { meta: ending, on: { GONE: 'stopped', DELETE: 'deleting', FAILED: 'failed' } },
    failing: { meta: ending, on: { GONE: 'failed', DELETE: 'deleting', FAILED: 'failed' } },
    deleting: { meta: ending, on: { GONE: 'deleted', FAILED: 'deleted' } },
    stopped: { on: { START: 'starting', DELETE: 'deleting' } },
    failed: { on: { START: 'starting', DELETE: 'deleting' } },
    deleted: { type: 'final' },
  },
});

export type VmState = StateOf<typeof logic>;
export type VmEvent = EventOf<typeof logic>;
export const vmMachine: Machine<VmEntity, VmState, VmEvent> = { entity: VmEntity, definition: defineMachine(logic) };
