import type { Cause } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { SubscriptionSteps } from '../subscriptions/subscription-steps.js';
import { unendedSubscription } from '../model/subscription.machine.js';
import { WorkloadSteps } from '../subscriptions/workload-steps.js';

/** Subscriptions of one transaction; a team with more is asked about again. */
const batch = 500;

/** Ends what a team holds of GPUs, as its owner would by unsubscribing with `force`. */
@Injectable()
export class TeamEnding {
  constructor(
    private readonly subscriptions: SubscriptionSteps,
    private readonly workloads: WorkloadSteps,
  ) {}

  /** Starts to end up to 500 subscriptions that are not ending yet, with their workloads. May be repeated. */
  async endSome(manager: EntityManager, teamId: string, requestId: string | null): Promise<void> {
    const held = await this.subscriptions.lockWhere(
      manager,
      `team_id = $1 AND ${unendedSubscription}`,
      [teamId],
      batch,
    );
    if (held.length === 0) return;
    const ids = held.map(({ subscriptionId }) => subscriptionId);
    const cause: Cause = { actor: 'system:teams', requestId, reason: 'The team is being deleted with what it holds.' };
    await this.workloads.endAll(manager, await this.workloads.lockLive(manager, ids), cause);
    await this.subscriptions.moveAll(manager, held, 'UNSUBSCRIBE', cause);
  }
}
