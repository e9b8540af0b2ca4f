import { setTimeout as delay } from 'node:timers/promises';
import { type CallContext } from '@atoll/contracts';
import {
  deletionCalledOff,
  teamDeletionAnswered,
  type TeamDeletionAnswered,
  type TeamHolding,
} from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { OnEvent, Outbox, type EventDelivery } from '@atoll/events';
import { remainingMs } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';
import { WorkspaceEntity } from '../model/workspace.entity.js';
import { DeletionAnswerEntity } from '../model/team-deletion.entity.js';
import { TeamEntity } from '../model/team.entity.js';

const pollMs = 25;
/** Of the caller's patience, what concluding the deletion may take. */
const concludingMs = 500;

/**
 * What the services that can hold something of a team answer when they are asked before it, or a workspace of it, is
 * deleted.
 */
@Injectable()
export class HolderAnswers {
  private readonly logger = new Logger(HolderAnswers.name);

  constructor(
    private readonly dataSource: DataSource,
    private readonly outbox: Outbox,
    private readonly settings: TeamsSettings,
  ) {}

  get areAsked(): boolean {
    return this.settings.deletionHolders.length > 0;
  }

  @OnEvent(teamDeletionAnswered, { consumer: 'team-deletion' })
  async onAnswered(
    { team_id, attempt_id, holder, holds, remaining = [] }: TeamDeletionAnswered,
    { manager, publisher = holder }: EventDelivery,
  ): Promise<void> {
    // No service answers for another.
    if (publisher !== holder && publisher !== teamDeletionAnswered.service) return;
    // Locked, as it is by what ends the attempt: an answer that came beside that would never be forgotten.
    const team = await manager.findOne(TeamEntity, { where: { id: team_id }, lock: { mode: 'for_no_key_update' } });
    const isUnderWay =
      team?.deletionAttemptId === attempt_id ||
      (await manager.existsBy(WorkspaceEntity, { teamId: team_id, deletionAttemptId: attempt_id }));
    const answer = { attemptId: attempt_id, holder, holds, remaining };
    if (!isUnderWay) return;
    await manager.upsert(DeletionAnswerEntity, answer, ['attemptId', 'holder']);
    // The last answer that a forced deletion waited for: upkeep concludes it now, and not when it would ask again.
    if (holds !== null || (await this.remaining(manager, attempt_id)).length > 0) return;
    await manager.query(
      'UPDATE team SET forced_deletion_due_at = clock_timestamp() WHERE id = $1 AND forced_deletion_due_at IS NOT NULL',
      [team_id],
    );
  }

  /**
   * Waits until every holder has answered, or patience ends. Which replica takes in an answer does not matter: it lies
   * in the database.
   */
  async wait(attemptId: string, context: CallContext): Promise<void> {
    const patienceMs = Math.min(this.settings.deletionPatienceMs, remainingMs(context) - concludingMs);
    const untilMs = performance.now() + patienceMs;
    while ((await this.missing(this.dataSource.manager, attemptId)).length > 0 && performance.now() < untilMs)
      await delay(pollMs);
  }

  /**
   * Why the deletion is refused; undefined if every service has answered that it holds nothing. `what` is the object to
   * delete: "team".
   */
  async objection(manager: EntityManager, attemptId: string, what: string): Promise<AppError | undefined> {
    const { answers, missing } = await this.soFar(manager, attemptId);
    const holds = answers.flatMap((answer) => answer.holds ?? []).join('; ');
    if (holds) return new AppError('conflict', `The ${what} still holds something: ${holds}.`);
    return missing.length > 0 ? this.unanswered(what, missing) : undefined;
  }

  unanswered(what: string, missing: readonly string[] = []): AppError {
    if (missing.length > 0) this.logger.warn(`No answer from ${missing.join(', ')}: a ${what} is not deleted.`);
    return new AppError('unavailable', `Cannot determine whether the ${what} still holds something.`, {
      retryAfterSeconds: 5,
    });
  }

  /**
   * What a forced deletion still has to end, by kind; a service without an answer, or with only a text, is listed by
   * name.
   */
  async remaining(manager: EntityManager, attemptId: string): Promise<TeamHolding[]> {
    const { answers, missing } = await this.soFar(manager, attemptId);
    const answered = answers.flatMap(({ holder, holds, remaining }) =>
      holds === null ? [] : remaining.length > 0 ? remaining : [{ kind: holder, count: null }],
    );
    return [...answered, ...missing.map((holder) => ({ kind: holder, count: null }))];
  }

  async forget(manager: EntityManager, attemptId: string): Promise<void> {
    await manager.delete(DeletionAnswerEntity, { attemptId });
  }

  /** Tells the holders that nothing is deleted. */
  async callOff(
    manager: EntityManager,
    { id, revision }: TeamEntity,
    attemptId: string,
    context?: CallContext,
  ): Promise<void> {
    if (this.areAsked)
      await this.outbox.add(manager, deletionCalledOff, { team_id: id, revision, attempt_id: attemptId }, context);
  }

  async missing(manager: EntityManager, attemptId: string): Promise<string[]> {
    return (await this.soFar(manager, attemptId)).missing;
  }

  /**
   * Both by one read: an answer that came between two would be neither among those that hold something nor among those
   * that are missing.
   */
  private async soFar(
    manager: EntityManager,
    attemptId: string,
  ): Promise<{ answers: DeletionAnswerEntity[]; missing: string[] }> {
    const { deletionHolders } = this.settings;
    if (deletionHolders.length === 0) return { answers: [], missing: [] };
    const answers = await manager.find(DeletionAnswerEntity, { where: { attemptId }, order: { holder: 'ASC' } });
    return {
      answers,
      missing: deletionHolders.filter((holder) => !answers.some((answer) => answer.holder === holder)),
    };
  }
}
