import { personOf, type CallContext } from '@atoll/contracts';
import type { Subscribe, Subscription } from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamCapacity } from '../capacity/team-capacity.js';
import { PoolCatalogue, type KnownPool } from '../sharing/pool-catalogue.js';
import { soldProfiles } from '../sharing/pool-terms.js';
import { SubscriptionAllocation, type SubscriptionAdmission } from './subscription-allocation.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { unendedSubscription } from '../model/subscription.machine.js';
import { admitted, SharedTransactions, type Answerable } from './shared-transactions.js';
import { SubscriptionSteps } from './subscription-steps.js';
import { subscriptionView } from './subscription-view.js';

type NewSubscription = Pick<
  SubscriptionEntity,
  'teamId' | 'workspaceId' | 'poolId' | 'name' | 'profile' | 'vRamGb' | 'vgpus'
>;

interface SubscribeRequest {
  readonly pool: KnownPool;
  readonly values: NewSubscription;
  /** Refused where the team has a subscription to the pool already. */
  readonly isUnique: boolean;
  readonly context: CallContext;
}

type PendingSubscribe = Answerable<SubscribeRequest, Subscription>;

/** Accepts subscriptions. Requests for one pool and profile share transactions. */
@Injectable()
export class SubscriptionAccepting {
  private readonly shared: SharedTransactions<SubscribeRequest, Subscription>;

  constructor(
    private readonly transactions: Transactions,
    private readonly pools: PoolCatalogue,
    private readonly gate: TeamGate,
    private readonly allocation: SubscriptionAllocation,
    private readonly subscriptions: SubscriptionSteps,
    private readonly capacity: TeamCapacity,
  ) {
    this.shared = new SharedTransactions<SubscribeRequest, Subscription>(transactions, (manager, all) =>
      this.acceptAll(manager, all),
    );
  }

  /**
   * Throws `insufficient_capacity`, with what would be accepted, and `conflict` if the team or the workspace is being
   * deleted, or the team has a subscription and may have one.
   */
  async subscribe(
    { team_id, workspace_id, pool_id, vgpus, profile, name, unique = false }: Subscribe,
    context: CallContext,
  ): Promise<Subscription> {
    const kept = await this.transactions.kept<Subscription>(context);
    if (kept) return kept;
    const workspaceId = await this.gate.requireGrowth(context.caller, team_id, 'team', workspace_id);
    const pool = await this.pools.pool(pool_id);
    const sold = requireSold(pool, profile);
    const values = {
      teamId: team_id,
      workspaceId,
      poolId: pool_id,
      name: name ?? null,
      profile: sold.name,
      vRamGb: String(sold.vRamGb),
      vgpus,
    };
    const request = { pool, values, isUnique: unique, context };
    return this.shared.add(`${pool_id} ${sold.name}`, { owner: team_id }, request);
  }

  /** Accepts or refuses each request by itself. All are for one pool. */
  private async acceptAll(manager: EntityManager, all: readonly PendingSubscribe[]): Promise<void> {
    const [first] = all;
    if (!first) return;
    const { pool } = first;
    const closings = await this.gate.holdAllOpen(
      manager,
      all.map(({ values: { teamId, workspaceId }, context: { caller } }) => ({ caller, teamId, workspaceId })),
    );
    await lockUnique(manager, pool, all);
    let open = all.filter(({ answer }, at) => {
      const closing = closings[at];
      if (closing) answer(closing);
      return !closing;
    });
    while (open.length > 0) {
      const { now, later } = apart(await refuseSecond(manager, pool, open));
      await this.decide(manager, pool, now);
      open = later;
    }
  }

  /** Answers each of these by itself. */
  private async decide(manager: EntityManager, pool: KnownPool, open: readonly PendingSubscribe[]): Promise<void> {
    const decisions = await this.allocation.decide(
      manager,
      pool,
      open.map(({ values, context }) => ({ ...values, requestedBy: personOf(context.caller) })),
    );
    const accepted = admitted(open, decisions);
    const rows = await this.write(manager, pool, accepted);
    accepted.forEach(({ answer }, place) => {
      const row = rows[place];
      if (!row) throw new Error('A request was not written.');
      answer(subscriptionView(row, pool));
    });
  }

  private async write(
    manager: EntityManager,
    pool: KnownPool,
    accepted: readonly (SubscribeRequest & { readonly admission: SubscriptionAdmission })[],
  ): Promise<SubscriptionEntity[]> {
    if (accepted.length === 0) return [];
    const all = accepted.map(({ values, context, admission }) => ({
      values: { ...values, lastError: shownAs(admission) },
      cause: causeOf(context),
      admission,
    }));
    const rows = await this.subscriptions.insertAll(manager, all);
    const held = all.flatMap(({ admission, cause }, at) =>
      rows[at] ? [{ admission, subscription: rows[at], isAdded: false, cause }] : [],
    );
    await this.allocation.hold(manager, pool, held);
    await this.capacity.note(
      manager,
      rows.map(({ teamId }) => teamId),
    );
    return rows;
  }
}

function requireSold(pool: KnownPool, profile?: string): ReturnType<typeof soldProfiles>[number] {
  const sold = soldProfiles(pool);
  const found = profile === undefined ? sold[0] : sold.find(({ name }) => name === profile);
  if (!found)
    throw invalidField(
      'profile',
      'isSold',
      `must be a profile that the pool sells: ${sold.map(({ name }) => name).join(', ')}.`,
    );
  return found;
}

/** Of several that must be the only ones of their team the first goes now: the next one depends on its outcome. */
function apart(open: readonly PendingSubscribe[]): { now: PendingSubscribe[]; later: PendingSubscribe[] } {
  const teamIds = new Set<string>();
  const { now = [], later = [] } = Object.groupBy(open, ({ isUnique, values: { teamId } }) => {
    const isTwin = isUnique && teamIds.has(teamId);
    teamIds.add(teamId);
    return isTwin ? 'later' : 'now';
  });
  return { now, later };
}

function uniqueTeamsOf(all: readonly SubscribeRequest[]): string[] {
  return [...new Set(all.flatMap(({ isUnique, values }) => (isUnique ? [values.teamId] : [])))].toSorted();
}

/** Of two at once that must be the only ones of their team, in whatever replica, the second waits for the first. */
async function lockUnique(
  manager: EntityManager,
  { poolId }: KnownPool,
  all: readonly SubscribeRequest[],
): Promise<void> {
  const teamIds = uniqueTeamsOf(all);
  if (teamIds.length === 0) return;
  await manager.query(
    `SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' only ' || key, 0)) FROM (SELECT unnest($1::text[]) AS key OFFSET 0) keys`,
    [teamIds.map((teamId) => `${poolId} ${teamId}`)],
  );
}

/**
 * Refuses those that must be the only ones of their team on the pool, and are not, and returns the others: a statement
 * after that of the locks, so that it sees what was committed before.
 */
async function refuseSecond(
  manager: EntityManager,
  { poolId }: KnownPool,
  open: readonly PendingSubscribe[],
): Promise<readonly PendingSubscribe[]> {
  const teamIds = uniqueTeamsOf(open);
  if (teamIds.length === 0) return open;
  const rows = await manager.query<{ teamId: string }[]>(
    `SELECT DISTINCT team_id AS "teamId" FROM subscription WHERE pool_id = $1 AND team_id = ANY ($2::uuid[]) AND ${unendedSubscription}`,
    [poolId, teamIds],
  );
  const holders = new Set(rows.map(({ teamId }) => teamId));
  return open.filter(({ answer, isUnique, values }) => {
    const isSecond = isUnique && holders.has(values.teamId);
    if (isSecond) answer(new AppError('conflict', 'Already subscribed to this pool.'));
    return !isSecond;
  });
}

/** The reason that a row shows until its first step. */
function shownAs({ reason }: SubscriptionAdmission): SubscriptionEntity['lastError'] {
  return reason && { ...reason, at: new Date().toISOString() };
}
