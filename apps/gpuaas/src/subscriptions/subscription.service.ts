import { notFound, requirePermission, type CallContext } from '@atoll/contracts';
import {
  type EndSubscription,
  type ResizeSubscription,
  type Subscription,
  type Unsubscribe,
} from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import type { WorkloadEntity } from '../model/workload.entity.js';
import { WorkloadSteps } from './workload-steps.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { SubscriptionResizing } from './subscription-resizing.js';
import { SubscriptionSteps } from './subscription-steps.js';
import { subscriptionView } from './subscription-view.js';
import { statusOf } from '../model/subscription-status.js';

/** Changes what a team holds of pools, and gives it back. */
@Injectable()
export class SubscriptionsService {
  constructor(
    private readonly transactions: Transactions,
    private readonly gate: TeamGate,
    private readonly pools: PoolCatalogue,
    private readonly resizing: SubscriptionResizing,
    private readonly subscriptions: SubscriptionSteps,
    private readonly workloads: WorkloadSteps,
  ) {}

  /**
   * An increase takes effect when the nodes have confirmed the added vGPUs; a decrease at once, since the removed ones
   * must not be in use.
   */
  async resize({ subscription_id, vgpus }: ResizeSubscription, context: CallContext): Promise<Subscription> {
    const { subscriptionId, teamId, workspaceId, poolId } = await this.find(subscription_id, context);
    const pool = await this.pools.pool(poolId);
    const refusal = await this.gate.growthRefusal(context.caller, teamId, 'subscription');
    return this.resizing.resize({ subscriptionId, teamId, workspaceId, pool, vgpus, refusal, context });
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
      if (statusOf(held.state) !== 'subscribing' && statusOf(held.state) !== 'active')
        return subscriptionView(held, pool);
      const running = await this.workloads.lockLive(manager, [subscription_id]);
      const shown = running.filter(({ state }) => state !== 'undoing');
      if (shown.length > 0 && !force) throw inUse(shown);
      await this.workloads.endAll(manager, running, cause);
      const left = await this.subscriptions.move(manager, held, 'UNSUBSCRIBE', cause);
      return subscriptionView(left ?? held, pool);
    });
  }

  /** For its members alone. */
  private async find(subscriptionId: string, { caller }: CallContext): Promise<SubscriptionEntity> {
    const found = await this.subscriptions.find(subscriptionId);
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

function inUse(running: readonly WorkloadEntity[]): AppError {
  const shown = running.slice(0, 10).map(({ workloadId, name }) => `${workloadId} (${name})`);
  const more = running.length > shown.length ? ` and ${running.length - shown.length} more` : '';
  return new AppError(
    'conflict',
    `Workloads run on the subscription: ${shown.join(', ')}${more}. Stop them, or send force: true.`,
  );
}
