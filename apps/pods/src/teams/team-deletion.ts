import { Outbox } from '@atoll/events';
import { TeamDeletionAnswers, type Doomed, type Held } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { PodSteps } from '../pods/pod-steps.js';

/** Pods of one transaction; a team with more is asked about again. */
const batch = 500;

/** Pods. */
@Injectable()
export class TeamDeletion extends TeamDeletionAnswers {
  constructor(
    outbox: Outbox,
    private readonly pods: PodSteps,
  ) {
    super('pods', outbox);
  }

  protected override async count(manager: EntityManager, { team_id, workspace_id }: Doomed): Promise<Held[]> {
    const [{ count = 0 } = {}] = await manager.query<{ count: number }[]>(
      `SELECT count(*)::int FROM pod WHERE team_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2) AND state <> 'deleted'`,
      [team_id, workspace_id ?? null],
    );
    return [{ kind: 'pod', name: 'pod', count }];
  }

  protected override async endSome(manager: EntityManager, teamId: string, requestId: string | null): Promise<void> {
    const rows = await manager.query<object[]>(
      `SELECT * FROM pod WHERE team_id = $1 AND state NOT IN ('deleting', 'deleted') ORDER BY pod_id LIMIT $2 FOR NO KEY UPDATE`,
      [teamId, batch],
    );
    const cause = { actor: 'system:teams', requestId, reason: 'The team is being deleted with what it holds.' };
    await this.pods.moveAll(
      manager,
      rows.map((row) => this.pods.rowOf(row)),
      'DELETE',
      cause,
    );
  }
}
