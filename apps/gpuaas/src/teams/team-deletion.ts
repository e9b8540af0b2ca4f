import { Outbox } from '@atoll/events';
import { TeamDeletionAnswers, type Doomed, type Held } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { BaremetalEnding } from '../baremetal/instances/baremetal-ending.js';
import { liveBaremetal } from '../model/baremetal-instance.machine.js';
import { liveSubscription } from '../model/subscription.machine.js';
import { TeamEnding } from './team-ending.js';

/** Subscriptions of GPU pools and bare-metal instances. */
@Injectable()
export class TeamDeletion extends TeamDeletionAnswers {
  constructor(
    outbox: Outbox,
    private readonly ending: TeamEnding,
    private readonly baremetal: BaremetalEnding,
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

  protected override async endSome(manager: EntityManager, teamId: string, requestId: string | null): Promise<void> {
    await this.ending.endSome(manager, teamId, requestId);
    await this.baremetal.endSome(manager, teamId, requestId);
  }
}
