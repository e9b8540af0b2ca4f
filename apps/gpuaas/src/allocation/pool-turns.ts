import type { CallContext } from '@atoll/contracts';
import { Transactions, Writers } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { KnownPool } from '../sharing/pool-catalogue.js';

type Work<T> = (manager: EntityManager) => Promise<T>;

const sharedBy = (teamId: string) => ({ shared: { lane: 'this pool', of: teamId } });
const laneOf = ({ poolId }: KnownPool): string => `pool ${poolId}`;

/**
 * Transactions of workloads that lock the row of a pool, in which all teams meet, since its slices are sold more than once: in each process those of one pool run
 * one at a time and wait without a connection, a team's beside those of any other. Where each is sold once, the subscription of a workload holds the leases that it takes, and nobody waits here. Throws
 * `unavailable` for one that has waited in vain. (Subscriptions and resizes of a pool share transactions: ADR 24.)
 */
@Injectable()
export class PoolTurns {
  constructor(
    private readonly transactions: Transactions,
    private readonly writers: Writers,
  ) {}

  runWorkload<T>(pool: KnownPool, teamId: string, context: CallContext, work: Work<T>): Promise<T> {
    return pool.overcommit > 1 ? this.writers.run(laneOf(pool), context, work, sharedBy(teamId)) : this.transactions.run(work);
  }

  /** As `runWorkload`, once for an `Idempotency-Key`. */
  onceWorkload<T extends object>(pool: KnownPool, teamId: string, context: CallContext, work: Work<T>): Promise<T> {
    if (pool.overcommit > 1) return this.writers.once(laneOf(pool), context, work, sharedBy(teamId));
    return this.transactions.once(context, work);
  }
}
