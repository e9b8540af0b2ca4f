import { defineMachine, type EventOf, type Machine, type StateOf, type StateRule } from '@atoll/state-machine';
import { setup } from 'xstate';
import { BaremetalNodeEntity } from './baremetal-node.entity.js';

/**
 * A host, as the operator sees it. While a tenant is on it, its instance says by `RETURN`, `SPOIL` and `REINSTALL` what
 * becomes of it: free again, to be cleaned in the background, or to be installed anew.
 */
const logic = setup({
  types: {
    meta: {} as StateRule,
    events: {} as {
      type:
        | 'PASSED'
        | 'REFUSED'
        | 'CHECK'
        | 'ACCEPT'
        | 'ASSIGN'
        | 'RELEASE'
        | 'RETURN'
        | 'SPOIL'
        | 'CLEANED'
        | 'REINSTALL'
        | 'REMOVE';
    },
  },
}).createMachine({
  id: 'baremetal_node',
  initial: 'checking',
  states: {
    checking: {
      meta: { deadlineMs: 300_000, givesUpBy: 'REFUSED', tries: 4, backOff: { firstMs: 2_000, maxMs: 8_000 } },
      on: { PASSED: 'available', REFUSED: 'check_failed', REMOVE: 'removed' },
    },
    /** Tried again by time where the host could not be reached, and by hand. */
    check_failed: { meta: { isReviewed: true }, on: { CHECK: 'checking', ACCEPT: 'available', REMOVE: 'removed' } },
    /** Reviewed: is it still reachable? */
    available: { meta: { isReviewed: true }, on: { ASSIGN: 'in_service', CHECK: 'checking', REMOVE: 'removed' } },
    in_service: {
      meta: { isReviewed: true },
      on: { RELEASE: 'releasing', RETURN: 'available', SPOIL: 'clean_failed', REINSTALL: 'reinstalling' },
    },
    releasing: { on: { RETURN: 'available', SPOIL: 'clean_failed', REINSTALL: 'reinstalling' } },
    reinstalling: {
      meta: { deadlineMs: 4 * 3_600_000, givesUpBy: 'SPOIL', tries: 6, backOff: { firstMs: 2_000, maxMs: 60_000 } },
      on: { CHECK: 'checking', SPOIL: 'clean_failed' },
    },
    /** What a tenant left could not be undone: tried again by time. */
    clean_failed: {
      meta: { isReviewed: true },
      on: { CLEANED: 'available', REINSTALL: 'reinstalling', CHECK: 'checking', REMOVE: 'removed' },
    },
    removed: { type: 'final' },
  },
});

export type BaremetalNodeState = StateOf<typeof logic>;
export type BaremetalNodeEvent = EventOf<typeof logic>;
export const baremetalNodeMachine: Machine<BaremetalNodeEntity, BaremetalNodeState, BaremetalNodeEvent> = {
  entity: BaremetalNodeEntity,
  definition: defineMachine(logic),
};
