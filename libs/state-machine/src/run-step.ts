import { Logger } from '@nestjs/common';
import type { KeptClaim } from './claim-keeper.js';
import type { DurableMachine, Outcome } from './durable-machine.js';
import type { MachineError, MachineRow } from './machine-row.js';
import { StepFailed } from './step-failed.js';

const logger = new Logger('Machines');

export type Failure = Omit<MachineError, 'at'> & { readonly isPermanent: boolean };
/** The result of a step, or its failure; undefined if it was interrupted by a shutdown or the loss of its claim. */
export type Found<Row, Event extends string> = Outcome<Row, Event> | Failure | undefined;

export interface StepLimits {
  /** Time limit in whole milliseconds. */
  readonly timeoutMs: number;
  readonly stopping: AbortSignal;
  readonly claim: KeptClaim;
}

/** Runs the step of a row until it ends or a limit is reached, even if it ignores its signal. Never throws. */
export async function runStep<Row extends MachineRow, State extends string, Event extends string>(
  machine: DurableMachine<Row, State, Event>,
  row: Row,
  { timeoutMs, stopping, claim }: StepLimits,
): Promise<Found<Row, Event>> {
  if (stopping.aborted) return undefined;
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([stopping, timeout, claim.lost]);
  const context = {
    get signal() {
      // Reading `lost` notices a claim that has expired while the process was frozen.
      return claim.lost.aborted ? claim.lost : signal;
    },
  };
  try {
    return await Promise.race([machine.step(row, context), aborted(signal)]);
  } catch (error) {
    if (stopping.aborted || claim.lost.aborted) return undefined;
    if (error instanceof StepFailed) return { code: error.code, message: error.message, isPermanent: error.isPermanent };
    if (timeout.aborted) return { code: 'timeout', message: 'There was no answer in time.', isPermanent: false };
    logger.error(`A step of ${machine.definition.id} in ${row.state} failed: ${error instanceof Error ? error.message : String(error)}`);
    return { code: 'internal', message: 'An internal error.', isPermanent: false };
  }
}

/**
 * Time limit of a step in whole milliseconds: until its deadline, but at most `stepMs`. A late try, after the deadline,
 * gets `stepMs`.
 */
export function stepTimeoutMs(leftMs: number, stepMs: number): number {
  return leftMs <= 0 ? stepMs : Math.min(stepMs, Math.ceil(leftMs));
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(new Error('aborted'));
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
}
