import { Outbox } from '@atoll/events';
import { TeamDeletionAnswers, type Doomed, type EndingCause, type Held } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { BaremetalInstanceSteps } from '../baremetal/instances/baremetal-instance-steps.js';
import { liveBaremetal } from '../model/baremetal-instance.machine.js';
import { liveSubscription, unendedSubscription } from '../model/subscription.machine.js';
import { SubscriptionSteps } from '../subscriptions/subscription-steps.js';
import { WorkloadSteps } from '../subscriptions/workload-steps.js';

/** The most that one transaction begins to end; a team with more is asked about again. */
const mostSubscriptions = 500;
const mostInstances = 100;

const baremetalEndings = [
  ['RELEASE', ['active']],
  ['CANCEL', ['requested', 'reaching', 'creating_user', 'placing_keys', 'setting_password', 'verifying']],
] as const;

/** Subscriptions of GPU pools and bare-metal instances. */
@Injectable()
export class TeamDeletion extends TeamDeletionAnswers {
  constructor(
    outbox: Outbox,
    private readonly subscriptions: SubscriptionSteps,
    private readonly workloads: WorkloadSteps,
    private readonly instances: BaremetalInstanceSteps,
  ) {
    super('gpuaas', outbox);
  }

  protected override async count(manager: EntityManager, { team_id, workspace_id }: Doomed): Promise<Held[]> {
    const of = 'team_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2)';
    const [{ pools = 0, hosts = 0 } = {}] = await manager.query<{ pools: number; hosts: number }[]>(
      `SELECT (SELECT count(*)::int FROM subscription WHERE ${of} AND ${liveSubscription}) AS pools,
         (SELECT count(*)::int FROM baremetal_instance WHERE ${of} AND ${liveBaremetal}) AS hosts`,
      [team_id, workspace_id ?? null],
    );
    return [
      { kind: 'gpu_pool_subscription', name: 'GPU pool subscription', count: pools },
      { kind: 'baremetal_instance', name: 'bare-metal instance', count: hosts },
    ];
  }

  /**
   * Begins to end up to 500 subscriptions with their workloads, and up to 100 bare-metal instances that are active and
   * 100 that are not yet.
   */
  protected override async endSome(manager: EntityManager, teamId: string, cause: EndingCause): Promise<void> {
    await this.endSubscriptions(manager, teamId, cause);
    for (const [event, states] of baremetalEndings) {
      const condition = 'team_id = $1 AND state = ANY ($2)';
      const held = await this.instances.lockWhere(manager, condition, [teamId, states], mostInstances);
      await this.instances.moveAll(manager, held, event, cause);
    }
  }

  private async endSubscriptions(manager: EntityManager, teamId: string, cause: EndingCause): Promise<void> {
    const condition = `team_id = $1 AND ${unendedSubscription}`;
    const held = await this.subscriptions.lockWhere(manager, condition, [teamId], mostSubscriptions);
    const ids = held.map(({ subscriptionId }) => subscriptionId);
    await this.workloads.endAll(manager, await this.workloads.lockLive(manager, ids), cause);
    await this.subscriptions.moveAll(manager, held, 'UNSUBSCRIBE', cause);
  }
}
