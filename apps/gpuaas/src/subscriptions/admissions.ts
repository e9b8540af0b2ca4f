import { isAppError, type AppError } from '@atoll/errors';
import type { Cause, MachineError } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Allocation, type Admission } from '../allocation/allocation.js';
import type { KnownPool } from '../sharing/pool-catalogue.js';
import type { Asked } from '../sharing/waiting-requests.js';
import { Entitlements } from '../allocation/entitlements.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { SubscriptionSteps } from './subscription-steps.js';

/** What an admitted subscription gets. */
export interface Decided {
  /** null with overcommit: an entitlement, whose workloads take the leases. */
  readonly admission: Admission | null;
  /** What it waits for before it can be used; null: nothing. */
  readonly reason: Omit<MachineError, 'at'> | null;
}

export interface Held {
  readonly decided: Decided;
  readonly subscription: SubscriptionEntity;
  /** Whether the subscription grows by it. */
  readonly isAdded: boolean;
  readonly cause: Cause;
}

/** Decides which subscriptions get what they ask of a pool, as leases or as entitlements, and writes it. */
@Injectable()
export class Admissions {
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
    all: readonly Asked[],
    leaving: readonly string[] = [],
  ): Promise<(Decided | AppError)[]> {
    if (all.length === 0) return [];
    if (pool.overcommit > 1) {
      const entitled = await this.entitlements.decide(manager, pool, all);
      return entitled.map((decided) => (isAppError(decided) ? decided : { admission: null, ...decided }));
    }
    const admissions = await this.allocation.decide(manager, pool, all, leaving);
    return admissions.map((admission) => (isAppError(admission) ? admission : { admission, reason: admission.reason }));
  }

  /** Writes what `decide` has decided, in the same transaction: leases and waiting requests. */
  async hold(manager: EntityManager, pool: KnownPool, all: readonly Held[]): Promise<void> {
    const leased = all.flatMap(({ decided: { admission }, subscription: { subscriptionId }, isAdded, cause }) =>
      admission ? [{ admission, holder: { subscriptionId, workloadId: null, isAdded }, cause }] : [],
    );
    if (leased.length === 0) return;
    await this.allocation.hold(manager, pool, leased);
    await this.subscriptions.assignLanes(
      manager,
      leased.map(({ holder }) => holder.subscriptionId),
    );
  }
}
