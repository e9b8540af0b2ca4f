import { defineMachine, type EventOf, type Machine, type StateOf, type TransientRule } from '@atoll/state-machine';
import { setup } from 'xstate';
import { GpuEntity } from './gpu.entity.js';

const backOff = { firstMs: 250, maxMs: 10_000 };
const switching = (givesUpBy: string): TransientRule => ({ deadlineMs: 60_000, givesUpBy, backOff });
const checking: TransientRule = { deadlineMs: 15_000, givesUpBy: 'LOST', backOff };

/**
 * The sharing mode of a GPU. While it switches nobody is placed on it but those who wait for where it goes. A switch
 * that failed or did not end is followed by a look at the device: where that says where it is, it is there; otherwise
 * it is offline until its node has been initialised.
 */
const logic = setup({
  types: {
    meta: {} as TransientRule,
    events: {} as {
      type:
        | 'POOLED'
        | 'PREPARE'
        | 'IS_SPATIAL'
        | 'IS_TEMPORAL'
        | 'IS_CONFIGURED_TEMPORAL'
        | 'FALL_BACK'
        | 'RETURN'
        | 'ARRIVED'
        | 'STAYED'
        | 'DOUBT'
        | 'LOST'
        | 'GO_OFFLINE';
    },
  },
}).createMachine({
  id: 'gpu',
  initial: 'unpooled',
  states: {
    unpooled: { on: { POOLED: 'offline' } },
    /** The node is not ready, or the GPU was lost. Its capacity is 0; holders keep their parts. */
    offline: { on: { PREPARE: 'preparing' } },
    /** Brought to the mode that its leases need, or to the configured one. */
    preparing: {
      meta: { deadlineMs: 60_000, givesUpBy: 'LOST', backOff, givesBack: true, portion: 1_000 },
      on: {
        IS_SPATIAL: 'spatial',
        IS_TEMPORAL: 'temporal',
        IS_CONFIGURED_TEMPORAL: 'configured_temporal',
        LOST: 'offline',
        GO_OFFLINE: 'offline',
      },
    },
    spatial: { on: { FALL_BACK: 'to_temporal', GO_OFFLINE: 'offline' } },
    to_temporal: {
      meta: switching('DOUBT'),
      on: { ARRIVED: 'temporal', STAYED: 'spatial', DOUBT: 'doubting_temporal', GO_OFFLINE: 'offline' },
    },
    doubting_temporal: {
      meta: checking,
      on: { ARRIVED: 'temporal', STAYED: 'spatial', LOST: 'offline', GO_OFFLINE: 'offline' },
    },
    /** Fell back; returns by itself. */
    temporal: { on: { RETURN: 'to_spatial', GO_OFFLINE: 'offline' } },
    to_spatial: {
      meta: switching('DOUBT'),
      on: { ARRIVED: 'spatial', STAYED: 'temporal', DOUBT: 'doubting_spatial', GO_OFFLINE: 'offline' },
    },
    doubting_spatial: {
      meta: checking,
      on: { ARRIVED: 'spatial', STAYED: 'temporal', LOST: 'offline', GO_OFFLINE: 'offline' },
    },
    configured_temporal: { on: { GO_OFFLINE: 'offline' } },
  },
});

export type GpuState = StateOf<typeof logic>;
export type GpuEvent = EventOf<typeof logic>;
export const gpuMachine: Machine<GpuEntity, GpuState, GpuEvent> = {
  entity: GpuEntity,
  definition: defineMachine(logic),
};
