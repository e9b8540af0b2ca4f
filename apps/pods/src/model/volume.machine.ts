import {
  defineMachine,
  type EventOf,
  type Machine,
  type StateOf,
  type StateRule,
  type TransientRule,
} from '@atoll/state-machine';
import { setup } from 'xstate';
import { VolumeEntity } from './volume.entity.js';

const backOff = { firstMs: 250, maxMs: 15_000 };
/** Two days: what is left of a pod keeps its volumes in a container engine until its log was read, a day at most. */
const removing: TransientRule = { deadlineMs: 172_800_000, givesUpBy: 'FAILED', backOff, givesBack: true };

/** A shared volume. It is billed from `active` until it leaves for `deleting` or `failed`. */
const logic = setup({
  types: {
    meta: {} as StateRule,
    events: {} as { type: 'MADE' | 'GROW' | 'GROWN' | 'KEPT' | 'LOST' | 'DELETE' | 'REMOVED' | 'FAILED' },
  },
}).createMachine({
  id: 'shared_volume',
  initial: 'pending',
  states: {
    pending: {
      meta: { deadlineMs: 600_000, givesUpBy: 'FAILED', backOff },
      on: { MADE: 'active', DELETE: 'deleting', FAILED: 'failing' },
    },
    active: { meta: { isReviewed: true }, on: { GROW: 'growing', LOST: 'failed', DELETE: 'deleting' } },
    /** Where the cluster does not make it larger, it stays as large as it was. */
    growing: {
      meta: { deadlineMs: 120_000, givesUpBy: 'KEPT', backOff },
      on: { GROWN: 'active', KEPT: 'active', LOST: 'failed', DELETE: 'deleting' },
    },
    deleting: { meta: removing, on: { REMOVED: 'deleted', FAILED: 'deleted' } },
    /** It could not be created: what there is of it is removed. */
    failing: { meta: removing, on: { REMOVED: 'failed', DELETE: 'deleting', FAILED: 'failed' } },
    failed: { on: { DELETE: 'deleting' } },
    deleted: { type: 'final' },
  },
});

export type VolumeState = StateOf<typeof logic>;
export type VolumeEvent = EventOf<typeof logic>;
export const volumeMachine: Machine<VolumeEntity, VolumeState, VolumeEvent> = {
  entity: VolumeEntity,
  definition: defineMachine(logic),
};
