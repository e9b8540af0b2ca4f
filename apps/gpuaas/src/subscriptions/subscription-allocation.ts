import type { AppError } from '@atoll/errors';
import type { Cause } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Allocation, type Admission } from '../allocation/allocation.js';
import type { KnownPool } from '../sharing/pool-catalogue.js';
import type { PoolRequest } from '../sharing/waiting-requests.js';
import { Entitlements, type Entitled } from '../allocation/entitlements.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { SubscriptionSteps } from './subscription-steps.js';

/** What a subscription gets: leases, now or later; with overcommit an entitlement, whose workloads take the leases. */
export type SubscriptionAdmission = Admission | Entitled;

export interface AdmittedSubscription {
  readonly admission: SubscriptionAdmission;
  readonly subscription: SubscriptionEntity;
  /** Whether the subscription grows by it. */
  readonly isAdded: boolean;
  readonly cause: Cause;
}

/** Decides which subscriptions get what they request from a pool, as leases or as entitlements, and writes it. */
@Injectable()
export class SubscriptionAllocation {
  constructor(
    private readonly allocation: Allocation,
    private readonly entitlements: Entitlements,
    private readonly subscriptions: SubscriptionSteps,
  ) {}

  /**
   * Returns for each, in their order, what it gets, or an AppError `insufficient_capacity`. The transaction holds the
   * lock of the pool from here on. `leaving` as in `Allocation.decide`.
   */
  async decide(
    manager: EntityManager,
    pool: KnownPool,
    all: readonly PoolRequest[],
    leaving: readonly string[] = [],
  ): Promise<(SubscriptionAdmission | AppError)[]> {
    if (all.length === 0) return [];
    if (pool.overcommit > 1) return this.entitlements.decide(manager, pool, all);
    return this.allocation.decide(manager, pool, all, leaving);
  }

  /** Writes what `decide` has decided, in the same transaction: leases and waiting requests. */
  async hold(manager: EntityManager, pool: KnownPool, all: readonly AdmittedSubscription[]): Promise<void> {
    const leased = all.flatMap(({ admission, subscription: { subscriptionId }, isAdded, cause }) =>
      'decision' in admission ? [{ admission, holder: { subscriptionId, workloadId: null, isAdded }, cause }] : [],
    );
    if (leased.length === 0) return;
    await this.allocation.hold(manager, pool, leased);
    await this.subscriptions.assignLanes(
      manager,
      leased.map(({ holder }) => holder.subscriptionId),
    );
  }
}
