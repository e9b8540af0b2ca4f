import type { EntityManager } from 'typeorm';
import type { Cause, MachineError } from './machine-row.js';

/** The result of a step. */
export type Outcome<Row, Event extends string> =
  /** The event has happened. `reason` is stored as the last error. */
  | { event: Event; reason?: Omit<MachineError, 'at'> }
  /**
   * The outcome depends on data read under the row lock: `decide` moves the row or parks it. A row that it leaves as it
   * was is put to rest, whatever it returns.
   */
  | { decide(manager: EntityManager, row: Row): Promise<unknown> }
  /**
   * Nothing has happened yet: run the step again after so many milliseconds. This does not count as a failed try.
   * `reason` says what the row waits for and replaces the last error; null clears it, as does a review that goes well
   * after failed ones. `values` are written to the feature's own columns.
   */
  | { againAfterMs: number; reason?: Omit<MachineError, 'at'> | null; values?: Partial<Row> }
  /** What `lanes` reads has changed since the row entered its state: assign its lanes anew and begin in the first. */
  | 'other lanes'
  /** The work in this lane is done; the step continues in the next of `furtherLanes`. Only valid if there is one. */
  | 'lane done'
  /** Nothing is to be done. Only valid in stable states. */
  | 'rest';

/** The transition by which a row has entered its state. */
export interface Passage<State, Event> {
  readonly from: State;
  readonly event: Event;
  readonly cause: Cause;
}

export interface StepContext {
  /**
   * Aborted when the step exceeds its time limit or its deadline, when its claim is lost, and at shutdown; the result
   * of the step is then discarded. Read it anew before each call to an external system and pass it on: reading it
   * checks the claim, so that a process that was frozen does not interfere with the worker that took over.
   */
  readonly signal: AbortSignal;
}
