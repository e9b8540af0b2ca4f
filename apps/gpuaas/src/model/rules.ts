import type { TransientRule } from '@atoll/state-machine';

const backOff = { firstMs: 500, maxMs: 8_000 };

/** A state in which nodes are asked for something: `FAILED` after five tries, or at the deadline. */
export function granting(deadlineMs: number): TransientRule {
  return { deadlineMs, givesUpBy: 'FAILED', tries: 5, backOff };
}

/** A state in which nodes are asked to release something: tried until the deadline, then `FAILED`. */
export function givingBack(deadlineMs: number): TransientRule {
  return { deadlineMs, givesUpBy: 'FAILED', backOff, givesBack: true };
}
