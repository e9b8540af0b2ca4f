import { personOf, type CallContext } from '@atoll/contracts';
import { isStatementTimeout } from '@atoll/database';
import { AppError, tooManyRequests } from '@atoll/errors';
import { remainingMs } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { FairSemaphore, Pace, Turns, type Refused } from '@atoll/waiting';

/**
 * Bounds the reports that are made at once, of each team and in all; and as many as of a team for each person, or
 * holder of keys of invited people, in however many teams. The rest wait, and the team of whom the fewest are being
 * made is next: however many reports some teams ask for, another team’s report waits for a place, and not for theirs.
 * Throws `too_many_requests` where a report has waited for its own person or team for half of its deadline,
 * `unavailable` where it has waited for others, and `deadline_exceeded` where it, or a statement of it, takes too long.
 */
@Injectable()
export class ReportQueue {
  private readonly places: FairSemaphore;

  constructor(
    { reportsAtOnce: permits, reportsPerTeam: permitsPerKey }: BillingSettings,
    private readonly turns: Turns,
  ) {
    this.places = new FairSemaphore({ permits, permitsPerKey }, refusal);
  }

  async run<T>(teamId: string, context: CallContext, work: (pace: Pace) => Promise<T>): Promise<T> {
    const make = () => work(new Pace(this.turns, () => requireTime(context)));
    const alsoKey = personOf(context.caller) ?? undefined;
    try {
      return await this.places.run(make, { key: teamId, alsoKey, patienceMs: remainingMs(context) / 2 });
    } catch (error) {
      throw isStatementTimeout(error) ? tooMuch(error) : error;
    }
  }
}

function refusal({ waitedMs, isKeyFull }: Refused): AppError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitedMs / 1000));
  return isKeyFull
    ? tooManyRequests(retryAfterSeconds)
    : new AppError('unavailable', 'Too many reports are being generated.', { retryAfterSeconds });
}

/** The database is there, and would be as long about it again. */
function tooMuch(cause: unknown): AppError {
  const message = 'There is too much usage to read in time. Ask for a shorter range, or for a single workspace.';
  return new AppError('deadline_exceeded', message, {}, { cause });
}

/** Nobody waits for the rest of a report that is late. */
function requireTime(context: CallContext): void {
  if (remainingMs(context) === 0) throw new AppError('deadline_exceeded', 'The report took too long to generate.');
}
