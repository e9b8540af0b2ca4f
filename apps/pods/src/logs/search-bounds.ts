import { AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';

/**
 * Searches of one team, and of all, that one process runs at once: each takes a second of the store or, where it is
 * slow, up to three.
 */
const perTeam = 2;
const inAll = 6;

/** Keeps searches from taking the connections that everything else needs. */
@Injectable()
export class SearchBounds {
  private readonly running = new Map<string, number>();
  private total = 0;

  /**
   * Throws `too_many_requests` where the team’s own searches are in the way, and `unavailable` where those of all are.
   */
  async run<T>(teamId: string, search: () => Promise<T>): Promise<T> {
    const ofTeam = this.running.get(teamId) ?? 0;
    if (ofTeam >= perTeam) throw new AppError('too_many_requests', tooMany, { retryAfterSeconds: 1 });
    if (this.total >= inAll)
      throw new AppError('unavailable', 'Too many searches are running.', { retryAfterSeconds: 1 });
    this.running.set(teamId, ofTeam + 1);
    this.total += 1;
    try {
      return await search();
    } finally {
      this.total -= 1;
      const left = (this.running.get(teamId) ?? 1) - 1;
      if (left === 0) this.running.delete(teamId);
      else this.running.set(teamId, left);
    }
  }
}

/** The sentence of every 429. */
const tooMany = 'Too many requests. Please try again later.';
