import type { Cause } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { SubscriptionSteps } from '../subscriptions/subscription-steps.js';
import { unendedSubscription } from '../model/subscription.machine.js';
import { WorkloadSteps } from '../subscriptions/workload-steps.js';
import { liveWorkload } from '../model/workload.machine.js';

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
    const held = await manager.query<{ subscription_id: string }[]>(
      `SELECT * FROM subscription WHERE team_id = $1 AND ${unendedSubscription} ORDER BY subscription_id LIMIT $2 FOR NO KEY UPDATE`,
      [teamId, batch],
    );
    if (held.length === 0) return;
    const running = await manager.query<object[]>(
      `SELECT * FROM workload WHERE subscription_id = ANY ($1) AND ${liveWorkload} ORDER BY workload_id FOR NO KEY UPDATE`,
      [held.map(({ subscription_id }) => subscription_id)],
    );
    const cause: Cause = { actor: 'system:teams', requestId, reason: 'The team is being deleted with what it holds.' };
    await this.workloads.endAll(
      manager,
      running.map((row) => this.workloads.rowOf(row)),
      cause,
    );
    await this.subscriptions.moveAll(
      manager,
      held.map((row) => this.subscriptions.rowOf(row)),
      'UNSUBSCRIBE',
      cause,
    );
  }
}
