import { defineMachine, type EventOf, type Machine, type StateOf, type StateRule } from '@atoll/state-machine';
import { setup } from 'xstate';
import { NodeEntity } from './node.entity.js';

/**
 * A node, as the operator sees it. `SUCCEEDED_ASIDE`: and it was cordoned before, so it is again. A run that did not
 * succeed is tried again by time and by hand.
 */
const logic = setup({
  types: {
    meta: {} as StateRule,
    events: {} as {
      type: 'INITIALISE' | 'RESET' | 'SUCCEEDED' | 'SUCCEEDED_ASIDE' | 'FAILED' | 'FAULT' | 'CORDON' | 'UNCORDON';
    },
  },
}).createMachine({
  id: 'node',
  initial: 'registered',
  states: {
    registered: { on: { INITIALISE: 'initialising', RESET: 'initialising' } },
    initialising: {
      meta: {
        deadlineMs: 60_000,
        givesUpBy: 'FAILED',
        tries: 3,
        backOff: { firstMs: 1_000, maxMs: 8_000 },
        givesBack: true,
        portion: 250,
      },
      on: { SUCCEEDED: 'ready', SUCCEEDED_ASIDE: 'cordoned', FAILED: 'init_failed' },
    },
    // A GPU of it may have been lost meanwhile.
    ready: { meta: { isReviewed: true }, on: { RESET: 'initialising', FAULT: 'init_failed', CORDON: 'cordoned' } },
    init_failed: { on: { INITIALISE: 'initialising', RESET: 'initialising', CORDON: 'cordoned_failed' } },
    /** Cordoned, and it has to be initialised before it can be used: by hand alone, until it is uncordoned. */
    cordoned_failed: { on: { UNCORDON: 'init_failed', INITIALISE: 'initialising', RESET: 'initialising' } },
    cordoned: { meta: { isReviewed: true }, on: { UNCORDON: 'ready', RESET: 'initialising', FAULT: 'init_failed' } },
  },
});

export type NodeState = StateOf<typeof logic>;
export type NodeEvent = EventOf<typeof logic>;
export const nodeMachine: Machine<NodeEntity, NodeState, NodeEvent> = {
  entity: NodeEntity,
  definition: defineMachine(logic),
};
