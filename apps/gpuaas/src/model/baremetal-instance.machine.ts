import {
  defineMachine,
  type EventOf,
  type Machine,
  type StateOf,
  type StateRule,
  type TransientRule,
} from '@atoll/state-machine';
import { setup } from 'xstate';
import { BaremetalInstanceEntity } from './baremetal-instance.entity.js';

/** What a deployment decides about the machine. */
export interface BaremetalLimits {
  readonly requestMs: number;
  /** For all steps of provisioning together. */
  readonly provisionMs: number;
  /** Further tries of a step after its first. */
  readonly retries: number;
  readonly backOffMs: number;
}

const provisioningStates = 5;

/**
 * A request and its host. Up to `creating_user` the host was only looked at, so a failure needs no undoing; from there
 * on every failure leads through `rolling_back`. Nothing but `RELEASE` leads out of `active`: an instance that was once
 * active is never ended by the platform. `SPOILED`: undoing was given up; the node is then cleaned in the background.
 */
function logicWith({ requestMs, provisionMs, retries, backOffMs }: BaremetalLimits) {
  const limits = { tries: retries + 1, backOff: { firstMs: backOffMs, maxMs: 4 * backOffMs } };
  const provisioning: TransientRule = {
    deadlineMs: Math.ceil(provisionMs / provisioningStates),
    givesUpBy: 'FAILED',
    ...limits,
  };
  const undoing: TransientRule = { deadlineMs: provisionMs, givesUpBy: 'SPOILED', ...limits, givesBack: true };
  return setup({
    types: {
      meta: {} as StateRule,
      events: {} as {
        type: 'ALLOCATED' | 'EXPIRED' | 'MISMATCHED' | 'DONE' | 'FAILED' | 'CANCEL' | 'RELEASE' | 'UNDONE' | 'SPOILED';
      },
    },
  }).createMachine({
    id: 'baremetal_instance',
    initial: 'requested',
    states: {
      requested: {
        // A host that is free a day later is nothing that the caller still expects to pay for.
        meta: { deadlineMs: requestMs, givesUpBy: 'EXPIRED', byTheClock: true },
        on: { ALLOCATED: 'reaching', EXPIRED: 'failed', MISMATCHED: 'failed', CANCEL: 'cancelled' },
      },
      reaching: { meta: provisioning, on: { DONE: 'creating_user', FAILED: 'failed', CANCEL: 'cancelled' } },
      creating_user: { meta: provisioning, on: { DONE: 'placing_keys', FAILED: 'rolling_back', CANCEL: 'cancelling' } },
      placing_keys: {
        meta: provisioning,
        on: { DONE: 'setting_password', FAILED: 'rolling_back', CANCEL: 'cancelling' },
      },
      setting_password: { meta: provisioning, on: { DONE: 'verifying', FAILED: 'rolling_back', CANCEL: 'cancelling' } },
      verifying: { meta: provisioning, on: { DONE: 'active', FAILED: 'rolling_back', CANCEL: 'cancelling' } },
      /** Reviewed: does the host have the keys of the team? */
      active: { meta: { isReviewed: true }, on: { RELEASE: 'releasing' } },
      rolling_back: { meta: undoing, on: { UNDONE: 'failed', SPOILED: 'failed' } },
      cancelling: { meta: undoing, on: { UNDONE: 'cancelled', SPOILED: 'cancelled' } },
      releasing: { meta: undoing, on: { UNDONE: 'released', SPOILED: 'released' } },
      failed: { type: 'final' },
      cancelled: { type: 'final' },
      released: { type: 'final' },
    },
  });
}

type Logic = ReturnType<typeof logicWith>;
export type BaremetalInstanceState = StateOf<Logic>;
export type BaremetalInstanceEvent = EventOf<Logic>;
export type BaremetalInstanceMachine = Machine<BaremetalInstanceEntity, BaremetalInstanceState, BaremetalInstanceEvent>;

export function baremetalInstanceMachine(limits: BaremetalLimits): BaremetalInstanceMachine {
  return { entity: BaremetalInstanceEntity, definition: defineMachine(logicWith(limits)) };
}

/** In SQL: those that hold, or wait for, a host. */
export const liveBaremetal = `state NOT IN ('failed', 'cancelled', 'released')`;
