import { setTimeout as delay } from 'node:timers/promises';
import type { DataSource, EntityManager } from 'typeorm';
import { DeadLetter } from './dead-letter.entity.js';

const pollMs = 100;

/** Outcome of a requested retry of a dead letter. `waiting`: no process of the service has started it yet. */
export type RetryOutcome =
  | { readonly is: 'handled' | 'waiting' | 'unknown' }
  | { readonly is: 'failed'; readonly lastError: string };

/**
 * Requests another try of a dead letter. The running service makes it within seconds, and the row shows the outcome.
 * Returns false if there is no such dead letter.
 */
export async function requestRetry(manager: EntityManager, id: string): Promise<boolean> {
  const { affected } = await manager.update(DeadLetter, { id }, { retryRequestedAt: () => 'now()' });
  return affected !== 0;
}

/**
 * The dead letters of a service as its schema has them: for commands beside the running service, which does the work.
 */
export class DeadLetterList {
  constructor(private readonly dataSource: DataSource) {}

  /** The latest first. */
  latest(limit = 100): Promise<DeadLetter[]> {
    return this.dataSource.getRepository(DeadLetter).find({ order: { lastFailedAt: 'DESC', id: 'DESC' }, take: limit });
  }

  /** Requests another try by the running service, and waits for its outcome. */
  async retry(id: string, patienceMs: number): Promise<RetryOutcome> {
    const letters = this.dataSource.getRepository(DeadLetter);
    if (!(await requestRetry(this.dataSource.manager, id))) return { is: 'unknown' };
    for (const untilMs = Date.now() + patienceMs; Date.now() < untilMs; await delay(pollMs)) {
      const letter = await letters.findOneBy({ id });
      if (!letter) return { is: 'handled' };
      if (!letter.retryRequestedAt) return { is: 'failed', lastError: letter.lastError };
    }
    return { is: 'waiting' };
  }
}
