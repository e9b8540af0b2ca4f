import type { CallContext } from '@atoll/contracts';
import type { Subscription } from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { AppError, isAppError } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamCapacity } from '../capacity/team-capacity.js';
import type { KnownPool } from '../sharing/pool-catalogue.js';
import { Admissions, type Decided } from './admissions.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { unendedSubscription } from '../model/subscription.machine.js';
import { SharedTransactions } from './shared-transactions.js';
import { SubscriptionSteps } from './subscription-steps.js';
import { subscriptionView } from './subscription-view.js';

type NewSubscription = Pick<
  SubscriptionEntity,
  'teamId' | 'workspaceId' | 'poolId' | 'name' | 'profile' | 'vRamGb' | 'vgpus'
>;

interface Request {
  readonly pool: KnownPool;
  readonly values: NewSubscription;
  /** Refused where the team has a subscription to the pool already. */
  readonly isUnique: boolean;
  readonly context: CallContext;
}

/** Accepts subscriptions. Requests for one pool and profile share transactions. */
@Injectable()
export class SubscriptionAccepting {
  private readonly shared: SharedTransactions<Request, Subscription>;

  constructor(
    transactions: Transactions,
    private readonly gate: TeamGate,
    private readonly admissions: Admissions,
    private readonly subscriptions: SubscriptionSteps,
    private readonly capacity: TeamCapacity,
  ) {
    this.shared = new SharedTransactions<Request, Subscription>(transactions, (manager, all) =>
      this.acceptAll(manager, all),
    );
  }

  /**
   * Throws `insufficient_capacity`, with what would be accepted, and `conflict` if the team or the workspace is being
   * deleted, or the team has a subscription and may have one.
   */
  async accept(request: Request): Promise<Subscription> {
    const { pool, values } = request;
    return this.shared.add(`${pool.poolId} ${values.profile}`, { of: values.teamId }, request);
  }

  /** Accepts or refuses each request by itself. All are for one pool. */
  private async acceptAll(manager: EntityManager, all: readonly Request[]): Promise<(Subscription | AppError)[]> {
    const [first] = all;
    if (!first) return [];
    const { pool } = first;
    const answers: (Subscription | AppError | undefined)[] = await this.gate.holdAllOpen(
      manager,
      all.map(({ values: { teamId, workspaceId }, context: { caller } }) => ({ caller, teamId, workspaceId })),
    );
    await lockUnique(manager, pool, all);
    for (let open = openOf(all, answers); open.length > 0; open = openOf(all, answers)) {
      await refuseSecond(manager, pool, open, answers);
      await this.decide(manager, pool, withoutTwins(openOf(all, answers)), answers);
    }
    return answers.map((answer) => {
      if (!answer) throw new Error('A request got no decision.');
      return answer;
    });
  }

  /** Answers each of these by itself. */
  private async decide(
    manager: EntityManager,
    pool: KnownPool,
    open: readonly Open[],
    answers: Answers,
  ): Promise<void> {
    const decisions = await this.admissions.decide(
      manager,
      pool,
      open.map(({ values }) => values),
    );
    const accepted: Accepted[] = [];
    open.forEach((request, place) => {
      const decided = decisions[place];
      if (!decided) throw new Error('A request got no decision.');
      if (isAppError(decided)) answers[request.at] = decided;
      else accepted.push({ ...request, decided });
    });
    const rows = await this.write(manager, pool, accepted);
    accepted.forEach(({ at }, place) => {
      const row = rows[place];
      if (!row) throw new Error('A request was not written.');
      answers[at] = subscriptionView(row, pool);
    });
  }

  private async write(
    manager: EntityManager,
    pool: KnownPool,
    accepted: readonly Accepted[],
  ): Promise<SubscriptionEntity[]> {
    if (accepted.length === 0) return [];
    const all = accepted.map(({ values, context, decided }) => ({
      values: { ...values, lastError: shownAs(decided) },
      cause: causeOf(context),
      decided,
    }));
    const rows = await this.subscriptions.insertAll(manager, all);
    const held = all.flatMap(({ decided, cause }, at) =>
      rows[at] ? [{ decided, subscription: rows[at], isAdded: false, cause }] : [],
    );
    await this.admissions.hold(manager, pool, held);
    await this.capacity.note(
      manager,
      rows.map(({ teamId }) => teamId),
    );
    return rows;
  }
}

/** A request without an answer yet, and its place among all. */
interface Open extends Request {
  readonly at: number;
}

interface Accepted extends Open {
  readonly decided: Decided;
}

type Answers = (Subscription | AppError | undefined)[];

function openOf(all: readonly Request[], answers: Answers): Open[] {
  return all.flatMap((request, at) => (answers[at] === undefined ? [{ ...request, at }] : []));
}

/**
 * Without those that must be the only ones of their team behind another of it: what becomes of that one is known first.
 */
function withoutTwins(open: readonly Open[]): Open[] {
  const teamIds = new Set<string>();
  return open.filter(({ isUnique, values: { teamId } }) => {
    const isTwin = isUnique && teamIds.has(teamId);
    teamIds.add(teamId);
    return !isTwin;
  });
}

function uniqueTeamsOf(all: readonly Request[]): string[] {
  return [...new Set(all.flatMap(({ isUnique, values }) => (isUnique ? [values.teamId] : [])))].toSorted();
}

/** Of two at once that must be the only ones of their team, in whatever replica, the second waits for the first. */
async function lockUnique(manager: EntityManager, { poolId }: KnownPool, all: readonly Request[]): Promise<void> {
  const teamIds = uniqueTeamsOf(all);
  if (teamIds.length === 0) return;
  await manager.query(
    `SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' only ' || key, 0)) FROM (SELECT unnest($1::text[]) AS key OFFSET 0) keys`,
    [teamIds.map((teamId) => `${poolId} ${teamId}`)],
  );
}

/**
 * Answers those that must be the only ones of their team on the pool, and are not: a statement after that of the locks,
 * so that it sees what was committed before.
 */
async function refuseSecond(
  manager: EntityManager,
  { poolId }: KnownPool,
  open: readonly Open[],
  answers: Answers,
): Promise<void> {
  const teamIds = uniqueTeamsOf(open);
  if (teamIds.length === 0) return;
  const rows = await manager.query<{ teamId: string }[]>(
    `SELECT DISTINCT team_id AS "teamId" FROM subscription WHERE pool_id = $1 AND team_id = ANY ($2::uuid[]) AND ${unendedSubscription}`,
    [poolId, teamIds],
  );
  const holders = new Set(rows.map(({ teamId }) => teamId));
  for (const { at, isUnique, values } of open)
    if (isUnique && holders.has(values.teamId))
      answers[at] = new AppError('conflict', 'Already subscribed to this pool.');
}

/** The reason that a row shows until its first step. */
function shownAs({ reason }: Decided): SubscriptionEntity['lastError'] {
  return reason && { ...reason, at: new Date().toISOString() };
}
