import { setTimeout as delay } from 'node:timers/promises';
import { type CallContext, type TeamPath } from '@atoll/contracts';
import { credentialsChanged, teamDeletionRequested, type TeamDeletion, type TeamHolding } from '@atoll/contracts/teams';
import { newId, Transactions, Writers } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { remainingMs, Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';
import { HolderAnswers } from './holder-answers.js';
import { TeamChanges } from '../changes/team-changes.js';
import { lockDue, requireDeletion, requireDeletionNow } from './team-deletion.service.js';
import { TeamRemoval } from './team-removal.js';
import { TeamEntity } from '../model/team.entity.js';

const pollMs = 50;
/** Of the caller's patience, what answering may take. */
const answeringMs = 500;

/**
 * Deletes a team with what it holds. Once begun it is not called off: the holders are asked to end what they hold,
 * again and again with back-off, until each has answered that nothing is left. All of it stands in the team's row, so
 * any replica goes on with it after any crash.
 */
@Injectable()
export class ForcedDeletionService {
  private readonly logger = new Logger(ForcedDeletionService.name);

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
    private readonly removal: TeamRemoval,
    private readonly answers: HolderAnswers,
    private readonly outbox: Outbox,
    private readonly rpc: Rpc,
    private readonly settings: TeamsSettings,
  ) {}

  /** Begins, or joins a forced deletion that is under way, and waits 8 s at most for its end. */
  async delete({ team_id }: TeamPath, context: CallContext): Promise<TeamDeletion> {
    requireDeletion(context, team_id);
    const patienceMs = Math.min(this.settings.forcedDeletionPatienceMs, remainingMs(context) - answeringMs);
    const until = performance.now() + patienceMs;
    await this.writers.run(team_id, context, (manager) => this.begin(manager, team_id, context));
    for (;;) {
      const remaining = await this.conclude(team_id);
      if (remaining === 'gone') return { deleting: null };
      if (performance.now() >= until) return { deleting: { id: team_id, status: 'deleting', remaining } };
      await delay(pollMs);
    }
  }

  /** For upkeep: concludes the deletion, or asks the holders again. */
  async goOn(teamId: string): Promise<void> {
    if ((await this.conclude(teamId)) === 'gone') return;
    await this.transactions.run(async (manager) => {
      const team = await lockDue(manager, teamId, 'forced_deletion_due_at');
      if (!team?.deletionAttemptId) return;
      const missing = await this.answers.missing(manager, team.deletionAttemptId);
      if (missing.length > 0)
        this.logger.warn(`Team ${teamId} is not deleted yet: no answer from ${missing.join(', ')}. Asking again.`);
      await this.ask(manager, team, team.deletionAttemptId);
    });
  }

  private async begin(manager: EntityManager, teamId: string, context: CallContext): Promise<void> {
    const team = await this.changes.lock(manager, teamId);
    await requireDeletionNow(manager, context, teamId);
    if (team.forcedDeletionBeganAt) return this.askSoon(manager, team);
    // Of a deletion that is not forced and under way, this takes over: it finds another attempt, and calls nothing off.
    const abandoned = team.deletionAttemptId;
    if (abandoned) await this.answers.forget(manager, abandoned);
    const attemptId = newId();
    Object.assign(team, { status: 'deleting', deletionAttemptId: attemptId, deletionDeadline: null });
    await this.changes.save(manager, team, context);
    await manager.query('UPDATE team SET forced_deletion_began_at = clock_timestamp() WHERE id = $1', [teamId]);
    await this.ask(manager, team, attemptId, context);
  }

  /** What is left. If nothing is left, deletes the team and returns `gone`, also if another replica was first. */
  private async conclude(teamId: string): Promise<TeamHolding[] | 'gone'> {
    const team = await this.dataSource.manager.findOneBy(TeamEntity, { id: teamId });
    if (!team || team.deletedAt) return 'gone';
    if (!team.forcedDeletionBeganAt || !team.deletionAttemptId)
      throw new AppError('conflict', 'The team is not being deleted.');
    const remaining = await this.answers.remaining(this.dataSource.manager, team.deletionAttemptId);
    if (remaining.length > 0) return remaining;
    const userIds = await this.transactions.run((manager) => this.remove(manager, teamId));
    for (const user_id of userIds) this.rpc.publish(credentialsChanged, { user_id });
    return 'gone';
  }

  private async remove(manager: EntityManager, teamId: string): Promise<string[]> {
    const team = await manager.findOne(TeamEntity, { where: { id: teamId }, lock: { mode: 'for_no_key_update' } });
    // An attempt that is forced ends in no other way.
    return team?.forcedDeletionBeganAt ? this.removal.remove(manager, team) : [];
  }

  /** Somebody waits for what is left: upkeep asks soon, and not up to a minute after it asked last. */
  private async askSoon(manager: EntityManager, { id }: TeamEntity): Promise<void> {
    await manager.query(
      `UPDATE team SET forced_deletion_due_at = LEAST(forced_deletion_due_at, clock_timestamp() + $2 * interval '1 millisecond') WHERE id = $1`,
      [id, this.settings.upkeepMs],
    );
  }

  /** The longer it takes, the less often: after a quarter of the time that has passed, and at least once a minute. */
  private async ask(
    manager: EntityManager,
    { id, revision }: TeamEntity,
    attemptId: string,
    context?: CallContext,
  ): Promise<void> {
    await manager.query(
      `UPDATE team SET forced_deletion_due_at = clock_timestamp()
         + LEAST(interval '1 minute', GREATEST($2 * interval '1 millisecond', (clock_timestamp() - forced_deletion_began_at) / 4))
       WHERE id = $1`,
      [id, this.settings.upkeepMs],
    );
    await this.outbox.add(
      manager,
      teamDeletionRequested,
      { team_id: id, revision, attempt_id: attemptId, force: true },
      context,
    );
  }
}
