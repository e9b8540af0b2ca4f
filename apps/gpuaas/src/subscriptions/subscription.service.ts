import { notFound, requirePermission, type CallContext } from '@atoll/contracts';
import {
  type EndSubscription,
  type ResizeSubscription,
  type Subscribe,
  type Subscription,
  type Unsubscribe,
} from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { AppError, invalidField, isAppError } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { TeamCapacity } from '../capacity/team-capacity.js';
import { Placement } from '../allocation/placement.js';
import { PoolTurns } from '../allocation/pool-turns.js';
import { PoolCatalogue, type KnownPool } from '../sharing/pool-catalogue.js';
import { soldProfiles } from '../sharing/pool-terms.js';
import type { WorkloadEntity } from '../model/workload.entity.js';
import { WorkloadSteps } from './workload-steps.js';
import { liveWorkload } from '../model/workload.machine.js';
import { Admissions } from './admissions.js';
import { SubscriptionAccepting } from './subscription-accepting.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { SubscriptionSteps } from './subscription-steps.js';
import { subscriptionView } from './subscription-view.js';
import { isResizing, statusOf } from '../model/subscription-status.js';

type Place = Pick<SubscriptionEntity, 'teamId' | 'workspaceId' | 'poolId'>;

/** Subscribing to pools, changing what is held, and giving it back. */
@Injectable()
export class SubscriptionsService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly turns: PoolTurns,
    private readonly gate: TeamGate,
    private readonly pools: PoolCatalogue,
    private readonly accepting: SubscriptionAccepting,
    private readonly admissions: Admissions,
    private readonly placement: Placement,
    private readonly subscriptions: SubscriptionSteps,
    private readonly workloads: WorkloadSteps,
    private readonly capacity: TeamCapacity,
  ) {}

  async subscribe(
    { team_id, workspace_id, pool_id, vgpus, profile, name, unique = false }: Subscribe,
    context: CallContext,
  ): Promise<Subscription> {
    const workspaceId = await this.gate.requireGrowth(context.caller, team_id, workspace_id);
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
    return this.accepting.accept({ pool, values, isUnique: unique, context });
  }

  /**
   * To more takes effect when the nodes have confirmed what is added; to fewer at once, since what is taken away must
   * not be in use.
   */
  async resize({ subscription_id, vgpus }: ResizeSubscription, context: CallContext): Promise<Subscription> {
    const { teamId, workspaceId, poolId } = await this.find(subscription_id, context);
    const pool = await this.pools.pool(poolId);
    const { caller } = context;
    const refusal = await this.gate.growthRefusal(caller, teamId, 'subscription');
    return this.turns.run(pool, context, async (manager) => {
      // The team before its subscription, as whoever ends what a team holds.
      const [closing] = await this.gate.holdAllOpen(manager, [{ caller, teamId, workspaceId }]);
      const held = await this.lock(manager, subscription_id);
      if (isResizing(held.state))
        throw new AppError('conflict', `A change to ${held.resizeVgpus} vGPUs is pending: wait until it has succeeded or failed.`);
      if (held.state !== 'active')
        throw new AppError('conflict', `The subscription is ${statusOf(held.state)}: only an active one can be changed.`);
      const closed = refusal ?? closing;
      if (vgpus > held.vgpus && closed) throw closed;
      const changed = await (vgpus > held.vgpus
        ? this.grow(manager, pool, held, vgpus, context)
        : this.shrink(manager, pool, held, vgpus, context));
      return subscriptionView(changed ?? held, pool);
    });
  }

  /** As `unsubscribe` with force, of a subscription that must be of the team and the pool, where those are named. */
  async end({ subscription_id, team_id, pool_id }: EndSubscription, context: CallContext): Promise<Subscription> {
    const { teamId, poolId } = await this.find(subscription_id, context);
    if ((team_id ?? teamId) !== teamId || (pool_id ?? poolId) !== poolId) throw notFound('subscription');
    return this.unsubscribe({ subscription_id, force: true }, context);
  }

  /** Repeated it changes nothing. With `force` what runs is stopped first. */
  async unsubscribe({ subscription_id, force = false }: Unsubscribe, context: CallContext): Promise<Subscription> {
    const { poolId } = await this.find(subscription_id, context);
    const pool = await this.pools.pool(poolId);
    const cause = causeOf(context);
    return this.transactions.once(context, async (manager) => {
      const held = await this.lock(manager, subscription_id);
      if (statusOf(held.state) !== 'subscribing' && statusOf(held.state) !== 'active') return subscriptionView(held, pool);
      const running = await this.workloads.lockLive(manager, subscription_id);
      const shown = running.filter(({ state }) => state !== 'undoing');
      if (shown.length > 0 && !force) throw inUse(shown);
      await this.workloads.endAll(manager, running, cause);
      const left = await this.subscriptions.move(manager, held, 'UNSUBSCRIBE', cause);
      return subscriptionView(left ?? held, pool);
    });
  }

  private async grow(
    manager: EntityManager,
    pool: KnownPool,
    held: SubscriptionEntity,
    vgpus: number,
    context: CallContext,
  ): Promise<SubscriptionEntity | undefined> {
    const { teamId, profile } = held;
    const cause = causeOf(context, `from ${held.vgpus} to ${vgpus} vGPUs`);
    const [decided] = await this.admissions.decide(manager, pool, [{ teamId, profile, vgpus: vgpus - held.vgpus }]);
    if (!decided || isAppError(decided)) throw decided ?? new Error('A request was not decided on.');
    const values = { resizeVgpus: vgpus, resizeFailure: null };
    const growing = await this.subscriptions.move(manager, held, 'GROW', cause, values, decided.reason);
    await this.admissions.hold(manager, pool, [{ decided, subscription: held, isAdded: true, cause }]);
    await this.capacity.note(manager, [teamId]);
    return growing;
  }

  private async shrink(
    manager: EntityManager,
    pool: KnownPool,
    held: SubscriptionEntity,
    vgpus: number,
    context: CallContext,
  ): Promise<SubscriptionEntity | undefined> {
    const { subscriptionId, vgpus: before, resizeVgpus } = held;
    // The size that it has: a resize that failed is not shown any more.
    if (vgpus === before && resizeVgpus === null) return held;
    const [{ used = 0 } = {}] = await manager.query<{ used: number }[]>(
      `SELECT coalesce(sum(vgpus), 0)::int AS used FROM workload WHERE subscription_id = $1 AND ${liveWorkload}`,
      [subscriptionId],
    );
    if (used > vgpus)
      throw new AppError('conflict', `${used} of its ${before} vGPUs are in use: stop workloads first, or keep at least ${used}.`);
    const cause = causeOf(context, `from ${before} to ${vgpus} vGPUs`);
    if (pool.overcommit === 1 && vgpus < before) {
      await this.placement.release(manager, { of: 'subscription_id', ids: [subscriptionId], idle: before - vgpus }, cause);
    }
    return this.subscriptions.move(manager, held, 'SHRUNK', cause, { vgpus, resizeVgpus: null, resizeFailure: null });
  }

  /** The subscription's team, workspace and pool, for its members alone. */
  private async find(subscriptionId: string, { caller }: CallContext): Promise<Place> {
    const [found] = await this.dataSource.query<Place[]>(
      'SELECT team_id AS "teamId", workspace_id AS "workspaceId", pool_id AS "poolId" FROM subscription WHERE subscription_id = $1',
      [subscriptionId],
    );
    if (!found) throw notFound('subscription');
    requirePermission(caller, found.teamId, 'useResources', 'subscription');
    return found;
  }

  private async lock(manager: EntityManager, subscriptionId: string): Promise<SubscriptionEntity> {
    const held = await this.subscriptions.lock(manager, subscriptionId);
    if (!held) throw notFound('subscription');
    return held;
  }
}

function requireSold(pool: KnownPool, profile?: string): ReturnType<typeof soldProfiles>[number] {
  const sold = soldProfiles(pool);
  const found = profile === undefined ? sold[0] : sold.find(({ name }) => name === profile);
  if (!found) throw invalidField('profile', 'isSold', `must be one that the pool sells: ${sold.map(({ name }) => name).join(', ')}.`);
  return found;
}

function inUse(running: readonly WorkloadEntity[]): AppError {
  const shown = running.slice(0, 10).map(({ workloadId, name }) => `${workloadId} (${name})`);
  const more = running.length > shown.length ? ` and ${running.length - shown.length} more` : '';
  return new AppError('conflict', `Workloads run on the subscription: ${shown.join(', ')}${more}. Stop them, or send force: true.`);
}
