import {
  deletionCalledOff,
  teamDeletionAnswered,
  teamDeletionRequested,
  workspaceDeletionRequested,
  type TeamDeletionRequested,
  type WorkspaceDeletionRequested,
} from '@atoll/contracts';
import { OnEvent, Outbox, type EventDelivery } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { liveBaremetal } from '../baremetal/baremetal-instance.machine.js';
import { BaremetalEnding } from '../baremetal/baremetal-ending.js';
import { liveSubscription } from '../subscriptions/subscription.machine.js';
import { TeamEnding } from './team-ending.js';

/** How long nothing new comes where the answer was that nothing is held: as long as a deletion that nobody concludes stays open. */
const closedMs = 60_000;

/** What is to be deleted: by the column that names it, which is the key of its closings too. */
interface Doomed {
  team_id: string;
  workspace_id?: string;
}

/** Answers what a team that is to be deleted, or a workspace, still holds of GPUs; ends it first where the deletion is forced. */
@Injectable()
export class TeamDeletion {
  constructor(
    private readonly outbox: Outbox,
    private readonly ending: TeamEnding,
    private readonly baremetal: BaremetalEnding,
  ) {}

  @OnEvent(teamDeletionRequested, { consumer: 'team-deletion' })
  async onRequested({ team_id, attempt_id, force = false }: TeamDeletionRequested, delivery: EventDelivery): Promise<void> {
    const { manager, requestId = null } = delivery;
    await lockTeam(manager, team_id);
    if (force) {
      await this.close(manager, { team_id }, attempt_id, null);
      await this.ending.endSome(manager, team_id, requestId);
      await this.baremetal.endSome(manager, team_id, requestId);
    }
    await this.answer(manager, { team_id }, attempt_id);
  }

  @OnEvent(workspaceDeletionRequested, { consumer: 'workspace-deletion' })
  async onWorkspaceRequested({ team_id, workspace_id, attempt_id }: WorkspaceDeletionRequested, { manager }: EventDelivery): Promise<void> {
    await lockTeam(manager, team_id);
    await this.answer(manager, { team_id, workspace_id }, attempt_id);
  }

  @OnEvent(deletionCalledOff, { consumer: 'deletion-called-off' })
  async onCalledOff({ attempt_id }: TeamDeletionRequested, { manager }: EventDelivery): Promise<void> {
    await manager.query('DELETE FROM team_closing WHERE attempt_id = $1', [attempt_id]);
    await manager.query('DELETE FROM workspace_closing WHERE attempt_id = $1', [attempt_id]);
  }

  private async answer(manager: EntityManager, doomed: Doomed, attempt_id: string): Promise<void> {
    const { team_id, workspace_id } = doomed;
    const of = 'team_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2)';
    const [{ pools = 0, hosts = 0 } = {}] = await manager.query<{ pools: number; hosts: number }[]>(
      `SELECT (SELECT count(*)::int FROM subscription WHERE ${of} AND ${liveSubscription}) AS pools,
         (SELECT count(*)::int FROM baremetal_instance WHERE ${of} AND ${liveBaremetal}) AS hosts`,
      [team_id, workspace_id ?? null],
    );
    const held = pools + hosts;
    if (held === 0) await this.close(manager, doomed, attempt_id, closedMs);
    const kinds = [
      { kind: 'gpu_pool_subscription', name: 'GPU pool subscription', count: pools },
      { kind: 'baremetal_instance', name: 'bare-metal instance', count: hosts },
    ].filter(({ count }) => count > 0);
    const holds = held === 0 ? null : kinds.map(({ name, count }) => `${count} ${name}${count === 1 ? '' : 's'}`).join(', ');
    const remaining = kinds.map(({ kind, count }) => ({ kind, count }));
    await this.outbox.add(manager, teamDeletionAnswered, { team_id, attempt_id, holder: 'gpuaas', holds, remaining });
  }

  /** Nothing new from now on. A forced deletion ends in no other way than that the team is gone, so what it closes stays closed. */
  private async close(manager: EntityManager, { team_id, workspace_id }: Doomed, attempt_id: string, forMs: number | null): Promise<void> {
    await manager.query(workspace_id === undefined ? closingOfTeam : closingOfWorkspace, [workspace_id ?? team_id, attempt_id, forMs]);
  }
}

/** For `$3` milliseconds, or for ever. */
function closing(table: 'team_closing' | 'workspace_closing', key: 'team_id' | 'workspace_id'): string {
  return `INSERT INTO ${table} (${key}, until, attempt_id)
    VALUES ($1, coalesce(clock_timestamp() + $3 * interval '1 millisecond', 'infinity'), $2)
    ON CONFLICT (${key}) DO UPDATE SET until = excluded.until, attempt_id = excluded.attempt_id WHERE ${table}.until < 'infinity'`;
}

const closingOfTeam = closing('team_closing', 'team_id');
const closingOfWorkspace = closing('workspace_closing', 'workspace_id');

/** Whoever is about to take something for the team commits first, or finds it closed. */
async function lockTeam(manager: EntityManager, teamId: string): Promise<void> {
  await manager.query(`SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' team ' || $1::text, 0))`, [teamId]);
}
