import { defineMachine, type EventOf, type Machine, type StateOf, type StateRule } from '@atoll/state-machine';
import { setup } from 'xstate';
import { givingBack, granting } from './rules.js';
import { SubscriptionEntity } from './subscription.entity.js';

const deadlineMs = 180_000;

/** `failed`: holds nothing and costs nothing, whatever it failed of. */
const logic = setup({
  types: {
    meta: {} as StateRule,
    events: {} as {
      type:
        | 'GRANTED'
        | 'GROW'
        | 'GROWN'
        | 'SHRUNK'
        | 'UNSUBSCRIBE'
        | 'DRAIN'
        | 'DRAINED'
        | 'RELEASED'
        | 'UNDONE'
        | 'FAILED';
    },
  },
}).createMachine({
  id: 'subscription',
  initial: 'subscribing',
  states: {
    subscribing: {
      meta: granting(deadlineMs),
      on: { GRANTED: 'active', UNSUBSCRIBE: 'unsubscribing', FAILED: 'undoing' },
    },
    active: { on: { GROW: 'growing', SHRUNK: 'active', UNSUBSCRIBE: 'unsubscribing' } },
    /** Active at its size, and nodes are asked to confirm what is added to it. */
    growing: {
      meta: granting(deadlineMs),
      on: { GROWN: 'active', UNSUBSCRIBE: 'unsubscribing', FAILED: 'reverting' },
    },
    /**
     * Active at its old size: the vGPUs to add could not be granted, and are undone before the capacity is released.
     */
    reverting: {
      meta: givingBack(deadlineMs),
      on: { UNDONE: 'active', UNSUBSCRIBE: 'unsubscribing', FAILED: 'active' },
    },
    unsubscribing: {
      meta: givingBack(deadlineMs),
      on: { DRAIN: 'draining', RELEASED: 'unsubscribed', FAILED: 'failed' },
    },
    /**
     * What runs on it stops first, each workload within the deadlines of its own states, some of which count what the
     * pods service does. None of that time is the node's: the deadline of `unsubscribing` begins when nothing runs
     * any more.
     */
    draining: {
      meta: { isReviewed: true, neverRests: true },
      on: { DRAINED: 'unsubscribing' },
    },
    /** It could not be granted, or only in part: the completed steps are undone before the capacity is released. */
    undoing: {
      meta: givingBack(deadlineMs),
      on: { UNDONE: 'failed', FAILED: 'failed' },
    },
    unsubscribed: { type: 'final' },
    failed: { type: 'final' },
  },
});

export type SubscriptionState = StateOf<typeof logic>;
export type SubscriptionEvent = EventOf<typeof logic>;
export const subscriptionMachine: Machine<SubscriptionEntity, SubscriptionState, SubscriptionEvent> = {
  entity: SubscriptionEntity,
  definition: defineMachine(logic),
};
/** In SQL: those that still hold something. */
export const liveSubscription = `state NOT IN ('unsubscribed', 'failed')`;
/** In SQL: those that may be unsubscribed. */
export const unendedSubscription = `state IN ('subscribing', 'active', 'growing', 'reverting')`;
/** In SQL: those whose status is not `unsubscribed` or `failed`. */
export const listedSubscription = `${liveSubscription} AND state <> 'undoing'`;
