import { Statements } from '@atoll/database';
import { DurableMachine, type Cause, type Outcome, type Passage, type StepContext } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { TeamCapacity } from '../capacity/team-capacity.js';
import { NodeDriver } from '../driver/node-driver.js';
import {
  heldBy,
  isOnLastNode,
  lanesOf,
  nodesLeft,
  noteInstances,
  nothingHeld,
  standingOf,
  type HeldFilter,
  type HeldLease,
  type Standing,
} from '../sharing/lease-store.js';
import { Entitlements } from '../allocation/entitlements.js';
import { readiness } from '../allocation/readiness.js';
import { LeaseRelease } from '../allocation/lease-release.js';
import { WaitingQueue } from '../allocation/waiting-queue.js';
import { withdrawRequest } from '../sharing/waiting-requests.js';
import { forgetHeldSlices } from '../metrics/held-slices.js';
import { NodeTroubles } from '../sharing/node-troubles.js';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { UsageFacts } from '../usage/usage-facts.js';
import { WorkloadSteps } from './workload-steps.js';
import { liveWorkload } from '../model/workload.machine.js';
import { SubscriptionEntity } from '../model/subscription.entity.js';
import { isResizing } from '../model/subscription-status.js';
import { subscriptionMachine, type SubscriptionEvent, type SubscriptionState } from '../model/subscription.machine.js';

type Found = Outcome<SubscriptionEntity, SubscriptionEvent>;

/**
 * Between two looks at what stops: a workload that ends makes its subscription due, unless that is locked at the time.
 */
const looks = { firstMs: 1_000, mostMs: 30_000 };
const self = { actor: 'system:gpuaas' };

/**
 * Steps of subscriptions: granted once their GPUs are in the required mode, ended once their workloads have stopped.
 */
@Injectable()
export class SubscriptionSteps extends DurableMachine<SubscriptionEntity, SubscriptionState, SubscriptionEvent> {
  protected readonly lanes = lanesOf('subscription', `subscription.state NOT IN ('growing', 'reverting') OR is_added`);
  override readonly owner = 'team_id';

  constructor(
    dataSource: DataSource,
    private readonly statements: Statements,
    private readonly driver: NodeDriver,
    private readonly pools: PoolCatalogue,
    private readonly leases: LeaseRelease,
    private readonly waiting: WaitingQueue,
    private readonly entitlements: Entitlements,
    private readonly workloads: WorkloadSteps,
    private readonly usage: UsageFacts,
    private readonly capacity: TeamCapacity,
    private readonly troubles: NodeTroubles,
  ) {
    super(dataSource, subscriptionMachine);
  }

  /** One node at a time: a hanging node delays only work on the same node. */
  async step(subscription: SubscriptionEntity, context: StepContext): Promise<Found> {
    switch (subscription.state as SubscriptionState) {
      case 'subscribing':
      case 'growing':
        return (await this.grant([subscription], context))[0] ?? 'rest';
      case 'unsubscribing':
        return this.giveBack(subscription, context);
      case 'draining':
        return this.drain(subscription);
      case 'undoing':
      case 'reverting':
        return this.undo(subscription, context);
      default:
        return 'rest';
    }
  }

  /** A node confirms what many subscriptions hold by one call. */
  override readonly steppedTogether = ['subscribing'] as const;

  override stepAll(subscriptions: readonly SubscriptionEntity[], context: StepContext): Promise<Found[]> {
    return this.grant(subscriptions, context);
  }

  /**
   * Forgets what was held before any metric window. Finds what a worker of a release before `draining` has left at rest
   * in it, and may leave there again as long as it runs.
   */
  override async sweep(): Promise<readonly string[]> {
    await forgetHeldSlices(this.statements);
    const stranded = await this.query<{ subscription_id: string }>(
      `SELECT subscription_id FROM subscription WHERE state = 'draining' AND due_at IS NULL AND parked_until IS NULL`,
      [],
    );
    return stranded.map(({ subscription_id }) => subscription_id);
  }

  protected override async enteredAll(
    manager: EntityManager,
    subscriptions: readonly SubscriptionEntity[],
    passage: Passage<SubscriptionState, SubscriptionEvent>,
  ): Promise<void> {
    if (passage.event !== 'GRANTED') return super.enteredAll(manager, subscriptions, passage);
    const ids = subscriptions.map(({ subscriptionId }) => subscriptionId);
    await manager.query('UPDATE subscription SET active_since = entered_at WHERE subscription_id = ANY ($1)', [ids]);
    await this.usage.tell(
      manager,
      subscriptions.map((subscription) => ({ subscription, vgpus: subscription.vgpus })),
    );
    await this.capacity.note(
      manager,
      subscriptions.map(({ teamId }) => teamId),
    );
  }

  protected override async entered(
    manager: EntityManager,
    subscription: SubscriptionEntity,
    { from, event, cause }: Passage<SubscriptionState, SubscriptionEvent>,
  ): Promise<void> {
    const { subscriptionId, teamId } = subscription;
    switch (subscription.state as SubscriptionState) {
      case 'active':
        await this.enteredActive(manager, subscription, event, cause);
        break;
      case 'undoing':
        await manager.query(`UPDATE subscription SET failure = last_error->>'message' WHERE subscription_id = $1`, [
          subscriptionId,
        ]);
        return withdrawRequest(manager, 'subscription', subscriptionId);
      case 'reverting':
        await manager.query(
          `UPDATE subscription SET resize_failure = last_error->>'message' WHERE subscription_id = $1`,
          [subscriptionId],
        );
        return withdrawRequest(manager, 'subscription', subscriptionId);
      case 'unsubscribing':
        await withdrawRequest(manager, 'subscription', subscriptionId);
        await manager.update(SubscriptionEntity, { subscriptionId }, { resizeVgpus: null, resizeFailure: null });
        // Where it was growing, its lanes were those of what was added.
        if (isResizing(from)) await this.assignLanes(manager, [subscriptionId]);
        return;
      case 'unsubscribed':
      case 'failed':
        if (event === 'FAILED') {
          await this.abandon(manager, subscriptionId, cause);
          await this.distrust(manager, subscription, { of: 'subscription_id', ids: [subscriptionId] }, cause);
        }
        await this.leases.releaseHeld(manager, { of: 'subscription_id', ids: [subscriptionId] }, cause);
        if (subscription.activeSince) await this.usage.tell(manager, [{ subscription, vgpus: 0 }]);
        break;
      default:
        return;
    }
    await this.capacity.note(manager, [teamId]);
  }

  /** Its size has changed, or could not be changed. */
  private async enteredActive(
    manager: EntityManager,
    subscription: SubscriptionEntity,
    event: SubscriptionEvent,
    cause: Cause,
  ): Promise<void> {
    const { subscriptionId, vgpus, resizeVgpus } = subscription;
    const added = { of: 'subscription_id', ids: [subscriptionId], isAdded: true } as const;
    switch (event) {
      case 'SHRUNK':
        return this.usage.tell(manager, [{ subscription, vgpus }]);
      case 'GROWN':
        await manager.query(
          'UPDATE subscription SET vgpus = resize_vgpus, resize_vgpus = NULL WHERE subscription_id = $1',
          [subscriptionId],
        );
        await manager.query('UPDATE lease SET is_added = false WHERE subscription_id = $1 AND is_added', [
          subscriptionId,
        ]);
        return this.usage.tell(manager, [{ subscription, vgpus: resizeVgpus ?? vgpus }]);
      default:
        if (event === 'FAILED') await this.distrust(manager, subscription, added, cause);
        return this.leases.releaseHeld(manager, added, cause);
    }
  }

  /** Asks a node once for all of the subscriptions, which are in one state and lane. */
  private async grant(all: readonly SubscriptionEntity[], context: StepContext): Promise<Found[]> {
    const [first] = all;
    if (!first) return [];
    const event = first.state === 'growing' ? 'GROWN' : 'GRANTED';
    const pools = await this.pools.poolsOf(all.map(({ poolId }) => poolId));
    // With overcommit a subscription is an entitlement: its workloads take the leases.
    const leased = all.filter(({ poolId }) => pools.get(poolId)?.overcommit === 1);
    const ids = leased.map(({ subscriptionId }) => subscriptionId);
    const entitled = await this.entitlements.stillWaiting(
      [...pools.values()],
      all.map(({ subscriptionId }) => subscriptionId),
    );
    const filter = { of: 'subscription_id', ids, isAdded: first.state === 'growing' } as const;
    const operation = 'confirm';
    const standings =
      leased.length > 0
        ? await standingOf(this.statements, filter, first.lane, operation)
        : new Map<string, Standing>();
    const standing = ({ subscriptionId }: SubscriptionEntity) => standings.get(subscriptionId) ?? nothingHeld;
    const found: (Found | undefined)[] = [];
    for (const subscription of all)
      found.push(
        leased.includes(subscription)
          ? await this.notYet(subscription, standing(subscription))
          : (entitled.get(subscription.subscriptionId) ?? { event }),
      );
    const ready = all.flatMap((subscription, at) => (found[at] === undefined ? standing(subscription).here : []));
    if (ready.length > 0) {
      const isTroubled = [...standings.values()].some((each) => each.isTroubled);
      const asking = { operation, lane: first.lane, isTroubled, context } as const;
      await noteInstances(
        this.statements,
        await this.troubles.ask(asking, (signal) => this.driver.confirm(ready, signal)),
      );
    }
    return all.map((subscription, at) => found[at] ?? (isOnLastNode(subscription) ? { event } : 'lane done'));
  }

  /** Returns what the subscription waits for; undefined if its node can be asked. */
  private async notYet(
    { subscriptionId, state, vgpus, resizeVgpus }: SubscriptionEntity,
    standing: Standing,
  ): Promise<Found | undefined> {
    if (standing.isWaiting) return this.waiting.poll('subscription', subscriptionId);
    return readiness(standing, state === 'growing' ? (resizeVgpus ?? vgpus) - vgpus : vgpus);
  }

  private async giveBack(subscription: SubscriptionEntity, context: StepContext): Promise<Found> {
    if (await this.isInUse(subscription))
      return this.moving('DRAIN', self, undefined, { code: 'stopping', message: 'Waiting for its workloads to stop.' });
    await this.driver.vacate(await this.leasesHere(subscription), context.signal);
    return isOnLastNode(subscription) ? { event: 'RELEASED' } : 'lane done';
  }

  /** The longer it takes, the less often it looks by itself: there may be thousands. */
  private async drain(subscription: SubscriptionEntity): Promise<Found> {
    if (!(await this.isInUse(subscription))) return this.moving('DRAINED', self);
    const waitedMs = Date.now() - subscription.enteredAt.getTime();
    return { againAfterMs: Math.min(looks.mostMs, Math.max(looks.firstMs, waitedMs / 4)) };
  }

  private async isInUse({ subscriptionId }: SubscriptionEntity): Promise<boolean> {
    const running = await this.query(`SELECT FROM workload WHERE subscription_id = $1 AND ${liveWorkload} LIMIT 1`, [
      subscriptionId,
    ]);
    return running.length > 0;
  }

  /** What still runs on it is given up with it. */
  private async abandon(manager: EntityManager, subscriptionId: string, cause: Cause): Promise<void> {
    const live = await this.workloads.lockLive(manager, [subscriptionId]);
    // The GPUs of all of them in one order, before each gives back its own.
    await this.leases.lockHeld(manager, { of: 'subscription_id', ids: [subscriptionId] });
    await this.workloads.moveAll(manager, live, 'FAILED', cause);
  }

  /** A node that did not release its leases is initialised before anybody else is placed there. */
  private async distrust(
    manager: EntityManager,
    subscription: SubscriptionEntity,
    held: HeldFilter,
    cause: Cause,
  ): Promise<void> {
    const message = subscription.lastError?.message ?? 'The node did not release its capacity.';
    await this.leases.takeOffline(manager, held, nodesLeft(subscription), message, cause);
  }

  private async undo(subscription: SubscriptionEntity, context: StepContext): Promise<Found> {
    await this.driver.vacate(await this.leasesHere(subscription), context.signal);
    return isOnLastNode(subscription) ? { event: 'UNDONE' } : 'lane done';
  }

  /** Those that the present state is about, on the node of its lane. */
  private leasesHere({ subscriptionId, state, lane }: SubscriptionEntity): Promise<HeldLease[]> {
    const filter = { of: 'subscription_id', ids: [subscriptionId], isAdded: isResizing(state) } as const;
    return heldBy(this.statements, filter, lane);
  }
}
