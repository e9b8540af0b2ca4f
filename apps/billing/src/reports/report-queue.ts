import { holderOf, type CallContext } from '@atoll/contracts';
import { isStatementTimeout } from '@atoll/database';
import { AppError, tooManyRequests } from '@atoll/errors';
import { remainingMs } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { FairSemaphore, Pace, Turns, type Refused } from '@atoll/waiting';

/**
 * Bounds the reports that are made at once, of each team and in all. One user has as many as one team, in however many
 * teams: others would wait for one report of each. Those by keys of invited people count for whoever holds these keys;
 * the operator has no bound but that of the teams. The rest wait, and the team of whom the fewest are being made is
 * next: however many reports some teams ask for, another team’s report waits for a place, and not for theirs. Throws
 * `too_many_requests` where a report has waited for its own team or user for half of its deadline, `unavailable` where
 * it has waited for others, and `deadline_exceeded` where it, or a statement of it, takes too long.
 */
@Injectable()
export class ReportQueue {
  private readonly users: FairSemaphore;
  private readonly places: FairSemaphore;

  constructor(
    { reportsAtOnce: permits, reportsPerTeam: permitsPerKey }: BillingSettings,
    private readonly turns: Turns,
  ) {
    this.users = new FairSemaphore({ permitsPerKey }, refusal);
    this.places = new FairSemaphore({ permits, permitsPerKey }, refusal);
  }

  async run<T>(teamId: string, context: CallContext, work: (pace: Pace) => Promise<T>): Promise<T> {
    const make = () => work(new Pace(this.turns, () => requireTime(context)));
    const { caller } = context;
    const user = caller.kind === 'user' && !caller.platformAdmin ? holderOf(caller) : undefined;
    const patienceMs = remainingMs(context) / 2;
    const inTeam = () => {
      const restMs = Math.max(0, remainingMs(context) - patienceMs);
      return this.places.run(make, { key: teamId, patienceMs: restMs });
    };
    try {
      return await (user === undefined ? inTeam() : this.users.run(inTeam, { key: user, patienceMs }));
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
