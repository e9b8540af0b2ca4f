import {
  deletionCalledOff,
  teamDeletionAnswered,
  teamDeletionRequested,
  workspaceDeletionRequested,
  type TeamDeletionRequested,
  type WorkspaceDeletionRequested,
} from '@atoll/contracts';
import { OnEvent, Outbox, type EventDelivery } from '@atoll/events';
import { closeTo, lockForAnswer, reopen, type Doomed } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { PodSteps } from '../pods/pod-steps.js';
import { VolumeSteps } from '../volumes/volume-steps.js';

/** Objects of a kind in one transaction; a team with more is asked about again. */
const batch = 500;

/** Answers what a team that is to be deleted, or a workspace, still has of pods and volumes; deletes it first where the deletion is forced. */
@Injectable()
export class TeamDeletion {
  constructor(
    private readonly outbox: Outbox,
    private readonly pods: PodSteps,
    private readonly volumes: VolumeSteps,
  ) {}

  @OnEvent(teamDeletionRequested, { consumer: 'team-deletion' })
  async onRequested({ team_id, attempt_id, force = false }: TeamDeletionRequested, delivery: EventDelivery): Promise<void> {
    const { manager, requestId = null } = delivery;
    await lockForAnswer(manager, team_id);
    if (force) {
      await closeTo(manager, { team_id }, attempt_id, true);
      await this.deleteSome(manager, team_id, requestId);
    }
    await this.answer(manager, { team_id }, attempt_id);
  }

  @OnEvent(workspaceDeletionRequested, { consumer: 'workspace-deletion' })
  async onWorkspaceRequested({ team_id, workspace_id, attempt_id }: WorkspaceDeletionRequested, { manager }: EventDelivery): Promise<void> {
    await lockForAnswer(manager, team_id);
    await this.answer(manager, { team_id, workspace_id }, attempt_id);
  }

  @OnEvent(deletionCalledOff, { consumer: 'deletion-called-off' })
  onCalledOff({ attempt_id }: TeamDeletionRequested, { manager }: EventDelivery): Promise<void> {
    return reopen(manager, attempt_id);
  }

  private async deleteSome(manager: EntityManager, teamId: string, requestId: string | null): Promise<void> {
    const cause = { actor: 'system:teams', requestId, reason: 'The team is being deleted with what it holds.' };
    const pods = await manager.query<object[]>(
      `SELECT * FROM pod WHERE team_id = $1 AND state NOT IN ('deleting', 'deleted') ORDER BY pod_id LIMIT $2 FOR NO KEY UPDATE`,
      [teamId, batch],
    );
    await this.pods.moveAll(
      manager,
      pods.map((row) => this.pods.rowOf(row)),
      'DELETE',
      cause,
    );
    // A cluster keeps a volume for as long as a pod of them still has it.
    const volumes = await manager.query<object[]>(
      `SELECT * FROM shared_volume WHERE team_id = $1 AND state NOT IN ('deleting', 'deleted') ORDER BY volume_id LIMIT $2 FOR NO KEY UPDATE`,
      [teamId, batch],
    );
    await this.volumes.moveAll(
      manager,
      volumes.map((row) => this.volumes.rowOf(row)),
      'DELETE',
      cause,
    );
  }

  private async answer(manager: EntityManager, doomed: Doomed, attempt_id: string): Promise<void> {
    const { team_id, workspace_id } = doomed;
    const counts = await manager.query<{ kind: string; count: number }[]>(
      `SELECT 'pod' AS kind, count(*)::int AS count FROM pod
         WHERE team_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2) AND state <> 'deleted'
       UNION ALL SELECT 'shared_volume', count(*)::int FROM shared_volume
         WHERE team_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2) AND state <> 'deleted'`,
      [team_id, workspace_id ?? null],
    );
    const remaining = counts.filter(({ count }) => count > 0);
    if (remaining.length === 0) await closeTo(manager, doomed, attempt_id);
    const words = remaining.map(({ kind, count }) => `${count} ${kind.replace('_', ' ')}${count === 1 ? '' : 's'}`);
    const holds = words.length === 0 ? null : words.join(' and ');
    await this.outbox.add(manager, teamDeletionAnswered, { team_id, attempt_id, holder: 'pods', holds, remaining });
  }
}
