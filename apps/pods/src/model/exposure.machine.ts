import {
  defineMachine,
  type EventOf,
  type Machine,
  type StateOf,
  type StateRule,
  type TransientRule,
} from '@atoll/state-machine';
import { setup } from 'xstate';
import { ExposureEntity } from './exposure.entity.js';

const backOff = { firstMs: 250, maxMs: 4_000 };
/**
 * A door that cannot be closed for an hour is found by the look for what nothing in the database knows. Its port stays
 * reserved until then.
 */
const closing: TransientRule = { deadlineMs: 3_600_000, givesUpBy: 'FAILED', backOff, givesBack: true };

/**
 * An exposed service. Its external port is reserved in the database before the first state is entered, and released
 * with the last.
 */
const logic = setup({
  types: {
    meta: {} as StateRule,
    events: {} as {
      type: 'OPENS' | 'OPENED' | 'UPDATE' | 'SWITCHED' | 'REVERTED' | 'REOPEN' | 'DELETE' | 'CLOSED' | 'FAILED';
    },
  },
}).createMachine({
  id: 'exposure',
  initial: 'pending',
  states: {
    pending: {
      meta: { deadlineMs: 120_000, givesUpBy: 'FAILED', backOff },
      on: { OPENS: 'provisioning', DELETE: 'deleting', FAILED: 'failing' },
    },
    provisioning: {
      meta: { deadlineMs: 120_000, givesUpBy: 'FAILED', backOff },
      on: { OPENED: 'active', DELETE: 'deleting', FAILED: 'failing' },
    },
    active: { meta: { isReviewed: true }, on: { UPDATE: 'updating', REOPEN: 'provisioning', DELETE: 'deleting' } },
    /**
     * The new door opens before the old one closes, where they have different ports. Once it is open its terms are
     * those of the service, `next` is null, and the old door closes.
     */
    updating: {
      meta: { deadlineMs: 60_000, givesUpBy: 'REVERTED', backOff },
      on: { SWITCHED: 'active', REVERTED: 'reverting', DELETE: 'deleting' },
    },
    /** The new door could not be had: what there is of it is closed, and the old one is open again. */
    reverting: {
      meta: { deadlineMs: 120_000, givesUpBy: 'FAILED', backOff },
      on: { OPENED: 'active', DELETE: 'deleting', FAILED: 'failing' },
    },
    deleting: { meta: closing, on: { CLOSED: 'deleted', FAILED: 'deleted' } },
    failing: { meta: closing, on: { CLOSED: 'failed', DELETE: 'deleting', FAILED: 'failed' } },
    failed: { on: { DELETE: 'deleting' } },
    deleted: { type: 'final' },
  },
});

export type ExposureState = StateOf<typeof logic>;
export type ExposureEvent = EventOf<typeof logic>;
export const exposureMachine: Machine<ExposureEntity, ExposureState, ExposureEvent> = {
  entity: ExposureEntity,
  definition: defineMachine(logic),
};
