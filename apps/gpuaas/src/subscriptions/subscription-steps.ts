import { DurableMachine, type Cause, type Outcome, type Passage, type StepContext } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { TeamCapacity } from '../capacity/team-capacity.js';
import { NodeDriver } from '../driver/node-driver.js';
import { countHeld, heldBy, isOnLastNode, lanesOf, nodesLeft, noteInstances, type HeldLease, type Query } from '../leases/lease-store.js';
import { readiness } from '../leases/readiness.js';
import { Placement } from '../leases/placement.js';
import { PoolCatalogue } from '../pools/pool-catalogue.js';
import { UsageFacts } from '../usage/usage-facts.js';
import { WorkloadSteps } from '../workloads/workload-steps.js';
import { liveWorkload } from '../workloads/workload.machine.js';
import { SubscriptionEntity } from './subscription.entity.js';
import { subscriptionMachine, type SubscriptionEvent, type SubscriptionState } from './subscription.machine.js';

type Found = Outcome<SubscriptionEntity, SubscriptionEvent>;

const lookAgainMs = 250;

/** Subscriptions: granted when their GPUs are where they are to be, ended when what ran on them has stopped. */
@Injectable()
export class SubscriptionSteps extends DurableMachine<SubscriptionEntity, SubscriptionState, SubscriptionEvent> {
  protected readonly lanes = lanesOf('subscription');

  constructor(
    dataSource: DataSource,
    private readonly driver: NodeDriver,
    private readonly pools: PoolCatalogue,
    private readonly placement: Placement,
    private readonly workloads: WorkloadSteps,
    private readonly usage: UsageFacts,
    private readonly capacity: TeamCapacity,
  ) {
    super(dataSource, subscriptionMachine);
  }

  /** One node at a time: what hangs holds up those who wait for the same node, and nobody else. */
  async step(subscription: SubscriptionEntity, context: StepContext): Promise<Found> {
    if (subscription.state === 'subscribing') return this.grant(subscription, context);
    if (subscription.state === 'unsubscribing') return this.giveBack(subscription, context);
    if (subscription.state === 'undoing') return this.undo(subscription, context);
    return 'rest';
  }

  protected override async entered(
    manager: EntityManager,
    subscription: SubscriptionEntity,
    { from, event, cause }: Passage<SubscriptionState, SubscriptionEvent>,
  ): Promise<void> {
    const { subscriptionId, teamId, vgpus } = subscription;
    switch (subscription.state as SubscriptionState) {
      case 'undoing':
        await manager.query(`UPDATE subscription SET failure = last_error->>'message' WHERE subscription_id = $1`, [subscriptionId]);
        return;
      case 'active':
        await this.usage.tell(manager, subscription, vgpus);
        if (from === 'subscribing') {
          await manager.update(SubscriptionEntity, { subscriptionId }, { activeSince: subscription.enteredAt });
        }
        break;
      case 'unsubscribed':
      case 'failed':
        if (event === 'FAILED') await this.abandon(manager, subscriptionId, cause);
        // A node that did not give back what was held is looked after before anybody else comes there.
        if (event === 'FAILED') {
          await this.placement.distrust(
            manager,
            'subscription_id',
            subscriptionId,
            nodesLeft(subscription),
            subscription.lastError?.message ?? 'It did not give back what was held.',
            cause,
          );
        }
        await this.placement.release(manager, 'subscription_id', subscriptionId, cause);
        if (subscription.activeSince) await this.usage.tell(manager, subscription, 0);
        break;
      default:
        return;
    }
    await this.capacity.note(manager, teamId);
  }

  private async grant(subscription: SubscriptionEntity, context: StepContext): Promise<Found> {
    const { subscriptionId, poolId, vgpus } = subscription;
    const { overcommit } = await this.pools.pool(poolId);
    // An entitlement: its workloads take the leases.
    if (overcommit > 1) return { event: 'GRANTED' };
    const query: Query = (sql, values) => this.query(sql, values);
    const leases = await this.leasesHere(subscription);
    const verdict = readiness(await countHeld(query, 'subscription_id', subscriptionId), leases, vgpus);
    if (verdict) return verdict;
    await noteInstances(query, await this.driver.confirm(leases, context.signal));
    return isOnLastNode(subscription) ? { event: 'GRANTED' } : 'lane done';
  }

  private async giveBack(subscription: SubscriptionEntity, context: StepContext): Promise<Found> {
    const { subscriptionId } = subscription;
    const running = await this.query(`SELECT FROM workload WHERE subscription_id = $1 AND ${liveWorkload} LIMIT 1`, [subscriptionId]);
    if (running.length > 0) {
      return { againAfterMs: lookAgainMs, reason: { code: 'stopping', message: 'It waits for its workloads to stop.' } };
    }
    await this.driver.vacate(await this.leasesHere(subscription), context.signal);
    return isOnLastNode(subscription) ? { event: 'RELEASED' } : 'lane done';
  }

  /** What still runs on it is given up with it. */
  private async abandon(manager: EntityManager, subscriptionId: string, cause: Cause): Promise<void> {
    const live = await this.workloads.lockLive(manager, subscriptionId);
    // The GPUs of all of them in one order, before each gives back its own.
    await this.placement.lockHeld(manager, 'subscription_id', subscriptionId);
    await this.workloads.moveAll(manager, live, 'FAILED', cause);
  }

  private async undo(subscription: SubscriptionEntity, context: StepContext): Promise<Found> {
    await this.driver.vacate(await this.leasesHere(subscription), context.signal);
    return isOnLastNode(subscription) ? { event: 'UNDONE' } : 'lane done';
  }

  private leasesHere({ subscriptionId, lane }: SubscriptionEntity): Promise<HeldLease[]> {
    return heldBy((sql, values) => this.query(sql, values), 'subscription_id', subscriptionId, lane);
  }
}
