import { notFound, personOf, type CallContext } from '@atoll/contracts';
import type { Subscription } from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { LeaseRelease, type Shrinking } from '../allocation/lease-release.js';
import { TeamCapacity } from '../capacity/team-capacity.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { isResizing, statusOf } from '../model/subscription-status.js';
import { liveWorkload } from '../model/workload.machine.js';
import type { KnownPool } from '../sharing/pool-catalogue.js';
import {
  SubscriptionAllocation,
  type AdmittedSubscription,
  type SubscriptionAdmission,
} from './subscription-allocation.js';
import { admitted, SharedTransactions, type Answerable } from './shared-transactions.js';
import { SubscriptionSteps } from './subscription-steps.js';
import { subscriptionView } from './subscription-view.js';

type Resized = Pick<SubscriptionEntity, 'subscriptionId' | 'teamId' | 'workspaceId'>;

interface ResizeRequest extends Resized {
  readonly pool: KnownPool;
  readonly vgpus: number;
  /** Why its team may not have more. */
  readonly refusal: AppError | undefined;
  readonly context: CallContext;
}

type PendingResize = Answerable<ResizeRequest, Subscription>;

/** A request that may be granted, with the row, which the transaction has locked. */
type LockedResize = PendingResize & { readonly held: SubscriptionEntity };

/**
 * Changes what subscriptions hold. Requests for one pool share transactions, in which each subscription is changed
 * once.
 */
@Injectable()
export class SubscriptionResizing {
  private readonly shared: SharedTransactions<ResizeRequest, Subscription>;

  constructor(
    transactions: Transactions,
    private readonly gate: TeamGate,
    private readonly allocation: SubscriptionAllocation,
    private readonly leases: LeaseRelease,
    private readonly subscriptions: SubscriptionSteps,
    private readonly capacity: TeamCapacity,
  ) {
    this.shared = new SharedTransactions<ResizeRequest, Subscription>(transactions, (manager, all) =>
      this.resizeAll(manager, all),
    );
  }

  /**
   * Throws `insufficient_capacity`, with what would be accepted, and `conflict` where the subscription cannot be
   * changed now.
   */
  async resize(request: ResizeRequest): Promise<Subscription> {
    return this.shared.add(request.pool.poolId, { owner: request.teamId, topic: request.subscriptionId }, request);
  }

  /** As one after the other: those that grow, in their order, and then those that shrink. All are for one pool. */
  private async resizeAll(manager: EntityManager, all: readonly PendingResize[]): Promise<void> {
    const [first] = all;
    if (!first) return;
    const { pool } = first;
    const open = await this.lockOpen(manager, all);
    const shrinking = await this.unused(
      manager,
      open.filter(({ vgpus, held }) => vgpus <= held.vgpus),
    );
    const leaving = await this.leases.idleLeases(manager, shrinksOn(pool, shrinking));
    await this.grow(
      manager,
      pool,
      open.filter(({ vgpus, held }) => vgpus > held.vgpus),
      leaving.map(({ gpuId }) => gpuId),
    );
    await this.leases.release(manager, leaving);
    await this.shrink(manager, pool, shrinking);
  }

  /** Those whose subscriptions can be changed, locked; the others are answered. */
  private async lockOpen(manager: EntityManager, all: readonly PendingResize[]): Promise<LockedResize[]> {
    // The teams before their subscriptions, as whoever ends what a team holds.
    const closings = await this.gate.holdAllOpen(
      manager,
      all.map(({ context: { caller }, teamId, workspaceId }) => ({ caller, teamId, workspaceId })),
    );
    const rows = await this.subscriptions.lockAll(
      manager,
      all.map(({ subscriptionId }) => subscriptionId),
    );
    const byId = new Map(rows.map((row) => [row.subscriptionId, row]));
    return all.flatMap((request, at) => {
      const held = byId.get(request.subscriptionId);
      const refusal = held ? refusalOf(request, held, closings[at]) : notFound('subscription');
      if (refusal) request.answer(refusal);
      return held && !refusal ? [{ ...request, held }] : [];
    });
  }

  /** Takes effect when the nodes have confirmed what is added. */
  private async grow(
    manager: EntityManager,
    pool: KnownPool,
    growing: readonly LockedResize[],
    leaving: readonly string[],
  ): Promise<void> {
    const decisions = await this.allocation.decide(
      manager,
      pool,
      growing.map(({ vgpus, context, held: { teamId, profile, vgpus: before } }) => ({
        teamId,
        requestedBy: personOf(context.caller),
        profile,
        vgpus: vgpus - before,
      })),
      leaving,
    );
    const all: AdmittedSubscription[] = [];
    for (const request of admitted(growing, decisions)) all.push(await this.begin(manager, pool, request));
    if (all.length === 0) return;
    await this.allocation.hold(manager, pool, all);
    await this.capacity.note(
      manager,
      all.map(({ subscription: { teamId } }) => teamId),
    );
  }

  private async begin(
    manager: EntityManager,
    pool: KnownPool,
    request: LockedResize & { readonly admission: SubscriptionAdmission },
  ): Promise<AdmittedSubscription> {
    const { held, vgpus, admission } = request;
    const cause = causeOfResize(request);
    const values = { resizeVgpus: vgpus, resizeFailure: null };
    const moved = await this.subscriptions.move(manager, held, 'GROW', cause, values, admission.reason);
    request.answer(subscriptionView(moved ?? held, pool));
    return { admission, subscription: held, isAdded: true, cause };
  }

  /** Those of these that keep what their workloads use; the others are answered. */
  private async unused(manager: EntityManager, shrinking: readonly LockedResize[]): Promise<LockedResize[]> {
    if (shrinking.length === 0) return [];
    const rows = await manager.query<{ subscription_id: string; used: number }[]>(
      `SELECT subscription_id, sum(vgpus)::int AS used FROM workload WHERE subscription_id = ANY ($1::bigint[]) AND ${liveWorkload} GROUP BY 1`,
      [shrinking.map(({ subscriptionId }) => subscriptionId)],
    );
    const usedBy = new Map(rows.map(({ subscription_id, used }) => [subscription_id, used]));
    return shrinking.filter(({ answer, subscriptionId, vgpus, held }) => {
      const used = usedBy.get(subscriptionId) ?? 0;
      if (used > vgpus) answer(inUse(used, held.vgpus));
      return used <= vgpus;
    });
  }

  /** Takes effect at once, since the removed vGPUs are not in use. */
  private async shrink(manager: EntityManager, pool: KnownPool, shrinking: readonly LockedResize[]): Promise<void> {
    for (const request of shrinking) {
      const { held, vgpus } = request;
      // The size that it has: a resize that failed is not shown any more.
      const isNone = vgpus === held.vgpus && held.resizeVgpus === null;
      const values = { vgpus, resizeVgpus: null, resizeFailure: null };
      const moved = isNone
        ? held
        : await this.subscriptions.move(manager, held, 'SHRUNK', causeOfResize(request), values);
      request.answer(subscriptionView(moved ?? held, pool));
    }
  }
}

function refusalOf(
  { vgpus, refusal }: ResizeRequest,
  held: SubscriptionEntity,
  closing: AppError | undefined,
): AppError | undefined {
  if (isResizing(held.state))
    return new AppError(
      'conflict',
      `A change to ${held.resizeVgpus} vGPUs is pending: wait until it has succeeded or failed.`,
    );
  if (held.state !== 'active')
    return new AppError(
      'conflict',
      `The subscription is ${statusOf(held.state)}; only an active subscription can be changed.`,
    );
  return vgpus > held.vgpus ? (refusal ?? closing) : undefined;
}

function inUse(used: number, before: number): AppError {
  return new AppError(
    'conflict',
    `${used} of its ${before} vGPUs are in use: stop workloads first, or keep at least ${used}.`,
  );
}

/** With overcommit a subscription holds no leases. */
function shrinksOn({ overcommit }: KnownPool, shrinking: readonly LockedResize[]): Shrinking[] {
  if (overcommit > 1) return [];
  return shrinking
    .filter(({ vgpus, held }) => vgpus < held.vgpus)
    .map((request) => ({
      subscriptionId: request.subscriptionId,
      count: request.held.vgpus - request.vgpus,
      cause: causeOfResize(request),
    }));
}

function causeOfResize({ context, held, vgpus }: LockedResize): ReturnType<typeof causeOf> {
  return causeOf(context, `from ${held.vgpus} to ${vgpus} vGPUs`);
}
