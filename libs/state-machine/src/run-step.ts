import { inBackground, isOutage, QueueTime, type OutageLog } from '@atoll/database';
import { AppError, messageOf } from '@atoll/errors';
import { untilAborted } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import type { KeptClaim } from './claim-keeper.js';
import type { DurableMachine } from './durable-machine.js';
import type { Outcome, StepContext } from './outcome.js';
import type { MachineError, MachineRow } from './machine-row.js';
import { StepFailed } from './step-failed.js';

const logger = new Logger('Machines');

export type Failure = Omit<MachineError, 'at'> & {
  readonly isPermanent: boolean;
  /** The database, or a service, did not answer: this counts as no try. */
  readonly isOutage?: true;
};
/** The result of a step, or its failure; undefined if it was interrupted by a shutdown or the loss of its claim. */
export type Found<Row, Event extends string> = Outcome<Row, Event> | Failure | undefined;

export interface StepLimits {
  /** Time limit in whole milliseconds. */
  readonly timeoutMs: number;
  readonly stopping: AbortSignal;
  /** Those of all rows whose step it is. */
  readonly claims: readonly KeptClaim[];
  readonly outages: OutageLog;
  /** Of each step of the worker that runs, while it does. */
  readonly queues: Set<Pick<QueueTime, 'isWaiting'>>;
}

/**
 * Runs a step, of one row or of several in one state, until it ends or a limit is reached, even if it ignores its
 * signal. Never throws.
 */
export async function runStep<Row extends MachineRow, State extends string, Event extends string, Answer>(
  machine: DurableMachine<Row, State, Event>,
  rows: readonly Row[],
  { timeoutMs, stopping, claims, outages, queues }: StepLimits,
  step: (context: StepContext) => Promise<Answer>,
): Promise<Answer | Failure | undefined> {
  if (stopping.aborted) return undefined;
  const timeout = AbortSignal.timeout(timeoutMs);
  const lost = AbortSignal.any(claims.map((claim) => claim.lost));
  const signal = AbortSignal.any([stopping, timeout, lost]);
  // Reading `lost` notices a claim that has expired while the process was frozen.
  const isLost = () => claims.some((claim) => claim.lost.aborted);
  const context = {
    get signal() {
      return isLost() ? lost : signal;
    },
  };
  const queued = new QueueTime(machine.table);
  queues.add(queued);
  try {
    return await untilAborted(
      signal,
      inBackground(() => step(context), queued),
    );
  } catch (error) {
    if (stopping.aborted || isLost()) return undefined;
    if (error instanceof StepFailed)
      return { code: error.code, message: error.message, isPermanent: error.isPermanent };
    const isTimedOut = timeout.aborted && queued.ms < timeoutMs / 2;
    if (isTimedOut) return { code: 'timeout', message: 'There was no response in time.', isPermanent: false };
    if (timeout.aborted || isOutage(error)) {
      const cause = timeout.aborted
        ? new AppError('unavailable', 'Timed out waiting for database connections.')
        : error;
      outages.log('warn', `Steps of ${machine.definition.id} were interrupted; they will run again`, cause);
      return {
        code: 'unavailable',
        message: 'A service or database that the step needs is unavailable.',
        isPermanent: false,
        isOutage: true,
      };
    }
    logger.error(`A step of ${machine.definition.id} in ${rows[0]?.state} failed: ${messageOf(error)}`);
    return { code: 'internal', message: 'An internal error.', isPermanent: false };
  } finally {
    queues.delete(queued);
  }
}

/** Writes a result: while it waits for a connection, it counts as a step of its machine that does. */
export async function inLine(queues: StepLimits['queues'], owner: string, write: () => Promise<void>): Promise<void> {
  const queued = new QueueTime(owner);
  queues.add(queued);
  await inBackground(write, queued).finally(() => queues.delete(queued));
}

/** Whether a step got so far that its lane does not hang. One that only waits or looks may not have needed its lane. */
export function isAnswer(found: Found<MachineRow, string>): boolean {
  if (found === undefined || found === 'rest' || found === 'other lanes' || isTimeout(found) || isCutShort(found))
    return false;
  return found === 'lane done' || 'event' in found || 'isPermanent' in found;
}

/** Whether an outage ended a step. */
export function isCutShort(found: unknown): boolean {
  return typeof found === 'object' && found !== null && 'isOutage' in found;
}

/** Whether a step did not answer in time. */
export function isTimeout(found: unknown): boolean {
  return (
    typeof found === 'object' && found !== null && 'isPermanent' in found && 'code' in found && found.code === 'timeout'
  );
}

/**
 * Time limit of a step in whole milliseconds: until its deadline, but at most `stepMs`. A late try, after the deadline,
 * gets `stepMs`.
 */
export function stepTimeoutMs(leftMs: number, stepMs: number): number {
  return leftMs <= 0 ? stepMs : Math.min(stepMs, Math.ceil(leftMs));
}
