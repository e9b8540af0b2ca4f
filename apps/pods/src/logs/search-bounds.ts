import { AppError, tooManyRequests } from '@atoll/errors';
import { FairSemaphore, type Refused } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';

/**
 * Keeps searches from taking the connections that everything else needs: one process runs two of one team at once, and
 * six in all. Each takes a second of the store or, where it is slow, up to three. None waits: `too_many_requests` where
 * the team’s own searches are in the way, and `unavailable` where those of all are.
 */
@Injectable()
export class SearchBounds extends FairSemaphore {
  constructor() {
    super({ permits: 6, permitsPerKey: 2, maxWaiting: 0 }, refusal);
  }
}

function refusal({ isKeyFull }: Refused): AppError {
  return isKeyFull
    ? tooManyRequests(1)
    : new AppError('unavailable', 'Too many searches are running.', { retryAfterSeconds: 1 });
}
