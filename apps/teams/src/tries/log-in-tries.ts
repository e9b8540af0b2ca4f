import { AppError, tooManyRequests } from '@atoll/errors';
import { FairSemaphore, type SemaphoreBounds } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { TeamsSettings } from '../teams-settings.js';
import { TokenBuckets, type BucketRate } from './token-buckets.js';

const inTurn: SemaphoreBounds = { permitsPerKey: 1, maxWaitingPerKey: 64, maxWaiting: 10_000, patienceMs: 2_000 };

/** Whose password or code is tried, and from where. */
export interface TriedAccount {
  readonly account: string;
  readonly from: string;
}

/** How often somebody may fail to log in, by `ATOLL_LOG_IN_TRIES`. */
@Injectable()
export class LogInTries {
  private readonly rate: BucketRate;
  private readonly turns = new FairSemaphore(inTurn, ({ waitedMs }) =>
    waitedMs > 0 ? tooManyLogIns() : tooManyRequests(1),
  );

  constructor(
    private readonly buckets: TokenBuckets,
    { logInTries }: TeamsSettings,
  ) {
    const [count = 1, seconds = 1] = logInTries.split('/').map(Number);
    this.rate = { refillMs: (seconds * 1000) / count, capacityMs: seconds * 1000 };
  }

  /**
   * Resolves with what `isRight` resolves with: whether a password or code is right. Only a wrong one uses up a try of
   * this account from this network. A try is taken before the comparison, so that the limit holds, and given back
   * afterwards, also where the comparison failed. Comparisons of one account from one network take turns in a replica:
   * otherwise right passwords that are compared at once would use up each other's tries. Throws `too_many_requests` if
   * no try is left, after `whenNoneIsLeft`, or if too many wait; `unavailable` if the turn does not come in time.
   */
  async check(
    tried: TriedAccount,
    isRight: () => Promise<boolean>,
    whenNoneIsLeft: () => Promise<void> = () => Promise.resolve(),
  ): Promise<boolean> {
    const { account, from } = tried;
    const attempt = async () => {
      if (!(await this.take(tried))) {
        await whenNoneIsLeft();
        throw tooManyRequests(Math.ceil(this.rate.refillMs / 1000));
      }
      let isWrong = false;
      try {
        isWrong = !(await isRight());
        return !isWrong;
      } finally {
        if (!isWrong) await this.buckets.giveBack([account, from], this.rate);
      }
    };
    return this.turns.run(attempt, { key: JSON.stringify([account, from]) });
  }

  /** Uses up a try, and returns whether there was one. */
  take({ account, from }: TriedAccount): Promise<boolean> {
    return this.buckets.take([account, from], this.rate);
  }
}

/** Those that came before were not compared in time. */
export function tooManyLogIns(): AppError {
  return new AppError('unavailable', 'Too many people are logging in at the moment.', { retryAfterSeconds: 2 });
}
