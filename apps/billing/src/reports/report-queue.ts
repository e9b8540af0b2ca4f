import type { CallContext } from '@atoll/contracts';
import { isStatementTimeout } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { remainingMs } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { BillingSettings } from '../billing-settings.js';
import { Pace, Turns } from '@atoll/waiting';

interface Waiting {
  start: () => void;
  refuse: (error: AppError) => void;
  timer: NodeJS.Timeout;
}

/** Of one team: reports that are being made, and those that wait, in the order they were asked for. */
interface TeamReports {
  running: number;
  waiting: Waiting[];
}

/**
 * Bounds the reports that are made at once, of each team and in all. The rest wait, and the team of whom the fewest are
 * being made is next: however many reports some teams ask for, another team’s report waits for a place, and not for
 * theirs. Throws `too_many_requests` where a report has waited for its own team for half of its deadline, `unavailable`
 * where it has waited for others, and `deadline_exceeded` where it, or a statement of it, takes too long.
 */
@Injectable()
export class ReportQueue {
  private running = 0;
  /** Those of whom a report runs or waits, in the order in which they were served last. */
  private readonly teams = new Map<string, TeamReports>();

  constructor(
    private readonly settings: BillingSettings,
    private readonly turns: Turns,
  ) {}

  async run<T>(teamId: string, context: CallContext, work: (pace: Pace) => Promise<T>): Promise<T> {
    await this.admit(teamId, context);
    try {
      return await work(new Pace(this.turns, () => requireTime(context)));
    } catch (error) {
      throw isStatementTimeout(error) ? tooMuch(error) : error;
    } finally {
      this.leave(teamId);
    }
  }

  private admit(teamId: string, context: CallContext): Promise<void> {
    const team = this.teams.get(teamId) ?? { running: 0, waiting: [] };
    this.teams.set(teamId, team);
    return new Promise((resolve, reject) => {
      const patienceMs = remainingMs(context) / 2;
      const waiting: Waiting = {
        start: resolve,
        refuse: reject,
        timer: setTimeout(() => this.refuse(teamId, team, waiting, patienceMs), patienceMs),
      };
      team.waiting.push(waiting);
      this.startNext();
    });
  }

  private leave(teamId: string): void {
    this.running -= 1;
    const team = this.teams.get(teamId);
    if (team) team.running -= 1;
    this.forgetIdle(teamId);
    this.startNext();
  }

  private startNext(): void {
    while (this.running < this.settings.reportsAtOnce) {
      const next = this.nextTeam();
      if (!next) return;
      const [teamId, team] = next;
      this.teams.delete(teamId);
      this.teams.set(teamId, team);
      this.running += 1;
      team.running += 1;
      const started = team.waiting.shift();
      clearTimeout(started?.timer);
      started?.start();
    }
  }

  /**
   * Of those who wait and may have one more: the team of whom the fewest run, of equals the one that was served before
   * the others.
   */
  private nextTeam(): [string, TeamReports] | undefined {
    let next: [string, TeamReports] | undefined;
    for (const entry of this.teams) {
      const [, { running, waiting }] = entry;
      const mayStart = waiting.length > 0 && running < this.settings.reportsPerTeam;
      if (mayStart && running < (next?.[1].running ?? Infinity)) next = entry;
    }
    return next;
  }

  private refuse(teamId: string, team: TeamReports, waiting: Waiting, waitedMs: number): void {
    team.waiting.splice(team.waiting.indexOf(waiting), 1);
    this.forgetIdle(teamId);
    const retryAfterSeconds = Math.max(1, Math.ceil(waitedMs / 1000));
    waiting.refuse(
      team.running >= this.settings.reportsPerTeam
        ? new AppError('too_many_requests', 'Too many requests. Please try again later.', { retryAfterSeconds })
        : new AppError('unavailable', 'Too many reports are being generated.', { retryAfterSeconds }),
    );
  }

  private forgetIdle(teamId: string): void {
    const team = this.teams.get(teamId);
    if (team?.running === 0 && team.waiting.length === 0) this.teams.delete(teamId);
  }
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
