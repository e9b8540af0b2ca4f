import type { Claim } from './claims.js';
import type { KeptClaim } from './claim-keeper.js';
import type { Found } from './run-step.js';

/** A claim that this process keeps alive. */
export interface Held<Row> {
  readonly claim: Claim<Row>;
  readonly kept: KeptClaim;
  /** The deadline of the row, by this process's own clock. */
  readonly endsAtMs: number;
}

/** Until the deadline, in milliseconds; 0 or less after it. */
export function leftMsOf({ endsAtMs }: Held<unknown>): number {
  return endsAtMs - performance.now();
}

/** What became of its step. */
export interface Result<Row, Event extends string> extends Held<Row> {
  readonly found: Found<Row, Event>;
}
