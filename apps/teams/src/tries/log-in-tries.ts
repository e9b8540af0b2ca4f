import { createHmac, hkdfSync } from 'node:crypto';
import { Statements } from '@atoll/database';
import { AppError, tooManyRequests } from '@atoll/errors';
import { FairSemaphore, type SemaphoreBounds } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { mostTeams } from '../changes/most-teams.js';
import { TeamsSettings } from '../teams-settings.js';

/** No row is as far ahead of the clock, unless the clock was set back. Longer than a statement waits for a row. */
const impossible = `(SELECT clock_timestamp()) + $3 * interval '1 ms' + interval '1 minute'`;

/**
 * GCRA: takes one try from the bucket `$1`, which refills one in `$2` ms and has room for `$3` ms. No row if none is
 * left. A bucket of a time before the clock was set back is full: it would be empty until that time comes again.
 */
const takeQuery = `
  INSERT INTO log_in_bucket AS b (id, full_at) VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
  ON CONFLICT (id) DO UPDATE SET full_at = $2 * interval '1 ms' +
    CASE WHEN b.full_at > ${impossible} THEN clock_timestamp() ELSE greatest(b.full_at, clock_timestamp()) END
  WHERE b.full_at <= (SELECT clock_timestamp()) + ($3 - $2) * interval '1 ms' OR b.full_at > ${impossible} RETURNING full_at`;

const giveBackQuery = `UPDATE log_in_bucket SET full_at = full_at - $2 * interval '1 ms' WHERE id = $1`;

const hourMs = 3_600_000;

const inTurn: SemaphoreBounds = { permitsPerKey: 1, maxWaitingPerKey: 64, maxWaiting: 10_000, patienceMs: 2_000 };

/** Whose password or code is tried, and from where. */
export interface TriedAccount {
  readonly account: string;
  readonly from: string;
}

/** How often somebody may fail, or do what costs others: token buckets in the database, for all replicas together. */
@Injectable()
export class LogInTries {
  private readonly key: Buffer;
  private readonly refillMs: number;
  private readonly capacityMs: number;
  private readonly turns = new FairSemaphore(inTurn, ({ waitedMs }) =>
    waitedMs > 0 ? tooManyLogIns() : tooManyRequests(1),
  );

  constructor(
    private readonly statements: Statements,
    { keyPepper, logInTries }: TeamsSettings,
  ) {
    this.key = Buffer.from(hkdfSync('sha256', keyPepper, '', 'atoll log-in buckets', 32));
    const [count = 1, seconds = 1] = logInTries.split('/').map(Number);
    this.refillMs = (seconds * 1000) / count;
    this.capacityMs = seconds * 1000;
  }

  /**
   * Resolves with what `isRight` resolves with: whether a password or code is right. Only a wrong one uses up a try of
   * this account from this network. A try is taken before the comparison, so that the limit holds, and given back
   * afterwards, also where the comparison failed. Comparisons of one account from one network take turns in a replica:
   * otherwise right passwords that are compared at once would use up each other's tries. Throws `too_many_requests` if
   * no try is left, after `whenNoneIsLeft`, or if too many wait; `unavailable` if the turn does not come in time.
   */
  async check(
    { account, from }: TriedAccount,
    isRight: () => Promise<boolean>,
    whenNoneIsLeft: () => Promise<void> = () => Promise.resolve(),
  ): Promise<boolean> {
    const attempt = async () => {
      if (!(await this.hasOne(account, from))) {
        await whenNoneIsLeft();
        throw tooManyRequests(Math.ceil(this.refillMs / 1000));
      }
      let isWrong = false;
      try {
        isWrong = !(await isRight());
        return !isWrong;
      } finally {
        if (!isWrong) await this.statements.query(giveBackQuery, [this.idOf(account, from), this.refillMs]);
      }
    };
    return this.turns.run(attempt, { key: JSON.stringify([account, from]) });
  }

  /** Takes one if there is one. */
  async hasOne(account: string, from: string): Promise<boolean> {
    return this.takeOf(account, from, this.refillMs, this.capacityMs);
  }

  /**
   * Whether another invitation may be mailed to this address now: ten at once, then one in six minutes, whoever sends
   * them. Within the transaction of `manager`, which gives the place back where it fails.
   */
  async mayInvite(manager: EntityManager, address: string): Promise<boolean> {
    const taken = await manager.query<object[]>(takeQuery, [this.idOf(address, 'invitations'), hourMs / 10, hourMs]);
    return taken.length > 0;
  }

  /**
   * Throws `too_many_requests` where the user has created `mostTeams` teams, of which one is forgotten each 432 s.
   * Rows of deleted teams stay, here and in other services. Within the transaction of `manager`, which gives the place
   * back where it fails.
   */
  async requireTeamCreation(manager: EntityManager, userId: string): Promise<void> {
    const refillMs = (24 * hourMs) / mostTeams;
    const taken = await manager.query<object[]>(takeQuery, [this.idOf(userId, 'teams'), refillMs, 24 * hourMs]);
    if (taken.length > 0) return;
    throw new AppError(
      'too_many_requests',
      `A user creates at most ${mostTeams} teams at once, and one in ${refillMs / 60_000} minutes after that.`,
      {
        retryAfterSeconds: Math.ceil(refillMs / 1000),
      },
    );
  }

  /** Whether this was not asked of the account for an hour. */
  async isFirstInAnHour(account: string, what: string): Promise<boolean> {
    return this.takeOf(account, what, hourMs, hourMs);
  }

  private async takeOf(account: string, from: string, refillMs: number, capacityMs: number): Promise<boolean> {
    const taken = await this.statements.query(takeQuery, [this.idOf(account, from), refillMs, capacityMs]);
    return taken.length > 0;
  }

  /** Addresses of strangers stand in no table. */
  private idOf(account: string, from: string): Buffer {
    return createHmac('sha256', this.key)
      .update(JSON.stringify([account, from]))
      .digest();
  }
}

/** Those that came before were not compared in time. */
export function tooManyLogIns(): AppError {
  return new AppError('unavailable', 'Too many people are logging in at the moment.', { retryAfterSeconds: 2 });
}
