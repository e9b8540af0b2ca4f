import { databaseNowMs } from '@atoll/database';
import type { CallContext } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ApiKeysService } from '../api-keys/api-key.service.js';
import { MembershipEntity } from '../model/membership.entity.js';
import { HolderAnswers } from './holder-answers.js';
import { TeamChanges } from '../changes/team-changes.js';
import type { TeamEntity } from '../model/team.entity.js';

/** How every deletion of a team ends, whether it was forced or not. */
@Injectable()
export class TeamRemoval {
  constructor(
    private readonly changes: TeamChanges,
    private readonly apiKeys: ApiKeysService,
    private readonly answers: HolderAnswers,
  ) {}

  /**
   * Deletes a locked team that holds nothing any more, with all its API keys. Returns the users whose credentials
   * change.
   */
  async remove(manager: EntityManager, team: TeamEntity, context?: CallContext): Promise<string[]> {
    team.deletedAt = new Date(await databaseNowMs(manager));
    await this.close(manager, team, context);
    await this.apiKeys.revokeTeam(manager, team.id);
    const members = await manager.findBy(MembershipEntity, { teamId: team.id });
    return members.map(({ userId }) => userId);
  }

  /** Ends the attempt that is under way and publishes the team as it is then. */
  async close(manager: EntityManager, team: TeamEntity, context?: CallContext): Promise<void> {
    if (team.deletionAttemptId) await this.answers.forget(manager, team.deletionAttemptId);
    Object.assign(team, {
      deletionAttemptId: null,
      deletionDeadline: null,
      forcedDeletionBeganAt: null,
      forcedDeletionDueAt: null,
    });
    await this.changes.save(manager, team, context);
  }
}
