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
import { liveSubscription } from '../subscriptions/subscription.machine.js';

/** How long nothing new comes where it was said that nothing is held: as long as a deletion that nobody concludes stays open. */
const closedMs = 60_000;

/** What is to be deleted: by the column that names it, which is the key of its closings too. */
interface Doomed {
  team_id: string;
  workspace_id?: string;
}

/** Says what a team that is to be deleted, or a workspace, still holds of GPUs. */
@Injectable()
export class TeamDeletion {
  constructor(private readonly outbox: Outbox) {}

  @OnEvent(teamDeletionRequested, { consumer: 'team-deletion' })
  onRequested({ team_id, attempt_id }: TeamDeletionRequested, { manager }: EventDelivery): Promise<void> {
    return this.answer(manager, { team_id }, attempt_id);
  }

  @OnEvent(workspaceDeletionRequested, { consumer: 'workspace-deletion' })
  onWorkspaceRequested({ team_id, workspace_id, attempt_id }: WorkspaceDeletionRequested, { manager }: EventDelivery): Promise<void> {
    return this.answer(manager, { team_id, workspace_id }, attempt_id);
  }

  @OnEvent(deletionCalledOff, { consumer: 'deletion-called-off' })
  async onCalledOff({ attempt_id }: TeamDeletionRequested, { manager }: EventDelivery): Promise<void> {
    await manager.query('DELETE FROM team_closing WHERE attempt_id = $1', [attempt_id]);
    await manager.query('DELETE FROM workspace_closing WHERE attempt_id = $1', [attempt_id]);
  }

  private async answer(manager: EntityManager, { team_id, workspace_id }: Doomed, attempt_id: string): Promise<void> {
    // Whoever is about to take something for the team commits first, or finds it closed.
    await manager.query(`SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' team ' || $1::text, 0))`, [team_id]);
    const [{ held = 0 } = {}] = await manager.query<{ held: number }[]>(
      `SELECT count(*)::int AS held FROM subscription WHERE team_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2) AND ${liveSubscription}`,
      [team_id, workspace_id ?? null],
    );
    if (held === 0) {
      const [table, key] = workspace_id === undefined ? ['team_closing', 'team_id'] : ['workspace_closing', 'workspace_id'];
      await manager.query(
        `INSERT INTO ${table} (${key}, until, attempt_id) VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond', $3)
         ON CONFLICT (${key}) DO UPDATE SET until = excluded.until, attempt_id = excluded.attempt_id`,
        [workspace_id ?? team_id, closedMs, attempt_id],
      );
    }
    const holds = held === 0 ? null : `${held} GPU pool subscription${held === 1 ? '' : 's'}`;
    await this.outbox.add(manager, teamDeletionAnswered, { team_id, attempt_id, holder: 'gpuaas', holds });
  }
}
