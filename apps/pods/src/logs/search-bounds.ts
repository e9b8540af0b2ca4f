import { holderOf, type CallContext } from '@atoll/contracts';
import { AppError, tooManyRequests } from '@atoll/errors';
import { remainingMs } from '@atoll/rpc';
import { FairSemaphore, type Refused } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';

/** As many as one request through several teams begins at once. */
const ofUser = 4;
const ofTeam = 2;
const ofAll = 6;

/**
 * Keeps searches from taking the connections that everything else needs: one process runs six at once, two of one team
 * and four of one user, in however many teams; those by keys of invited people that a user was shown are together as
 * those of another user. Each takes a second of the store or, where it is slow, up to three. As many of a team and of a
 * user wait, and the team that has the fewest is next. Throws `too_many_requests` where more would wait, or where a
 * search has waited for its own team or user for half of its deadline, and `unavailable` where it has waited for
 * others.
 */
@Injectable()
export class SearchBounds {
  private readonly users = new FairSemaphore({ permitsPerKey: ofUser, maxWaitingPerKey: ofUser }, () =>
    tooManyRequests(1),
  );
  private readonly teams = new FairSemaphore(
    { permits: ofAll, permitsPerKey: ofTeam, maxWaitingPerKey: ofTeam },
    refusal,
  );

  run<T>(teamId: string, context: CallContext, search: () => Promise<T>): Promise<T> {
    const { caller } = context;
    const patienceMs = remainingMs(context) / 2;
    const inTeam = () => {
      const restMs = Math.max(0, remainingMs(context) - patienceMs);
      return this.teams.run(search, { key: teamId, patienceMs: restMs });
    };
    return this.users.run(inTeam, {
      key: caller.kind === 'user' ? holderOf(caller) : caller.service,
      patienceMs,
    });
  }
}

/** Without a wait, the team's own searches that wait were too many. */
function refusal({ waitedMs, isKeyFull }: Refused): AppError {
  return isKeyFull || waitedMs === 0
    ? tooManyRequests(1)
    : new AppError('unavailable', 'Too many searches are running.', { retryAfterSeconds: 1 });
}
