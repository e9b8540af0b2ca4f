import {
  deletionCalledOff,
  teamDeletionAnswered,
  teamDeletionRequested,
  workspaceDeletionRequested,
  type TeamDeletionRequested,
  type WorkspaceDeletionRequested,
} from '@atoll/contracts/teams';
import { OnEvent, type EventDelivery, type Outbox } from '@atoll/events';
import type { EntityManager } from 'typeorm';
import { closeTo, lockForAnswer, reopen, type Doomed } from './team-closings.js';

/** How much of one kind is held: `{kind: 'pod', name: 'pod', count: 2}`. */
export interface Held {
  readonly kind: string;
  /** In the singular, for people. */
  readonly name: string;
  readonly count: number;
}

/** For the history of a resource that ends as its team is deleted by force: a `Cause` of libs/state-machine. */
export interface EndingCause {
  readonly actor: string;
  readonly requestId: string | null;
  readonly reason: string;
}

/**
 * What a service answers where a team, or a workspace, is to be deleted: what it still holds of it. Where the deletion
 * is forced it ends that too, beside the answer, which says at once how much there is. A service that holds anything of
 * teams provides one subclass, and `ExpiredClosings`. Needs the tables of `createClosingTables`, and that whatever
 * gives to a team does so under `TeamGate.holdOpen`.
 */
export abstract class TeamDeletionAnswers {
  /** `holder` is the service that answers. */
  protected constructor(
    private readonly holder: string,
    private readonly outbox: Outbox,
  ) {}

  /** All that is held of the team, or of its workspace. Kinds of which there is nothing may be among it. */
  protected abstract count(manager: EntityManager, of: Doomed): Promise<Held[]>;

  /**
   * Starts to end resources of the team that are not ending yet: at most some hundreds, since it is called again while
   * any are left.
   */
  protected abstract endSome(manager: EntityManager, teamId: string, cause: EndingCause): Promise<void>;

  @OnEvent(teamDeletionRequested, { consumer: 'team-deletion' })
  async onRequested(
    { team_id, attempt_id, force = false }: TeamDeletionRequested,
    { manager }: EventDelivery,
  ): Promise<void> {
    await lockForAnswer(manager, team_id);
    if (force) await closeTo(manager, { team_id }, attempt_id, true);
    await this.answer(manager, { team_id }, attempt_id);
  }

  /**
   * A consumer of its own, without the lock of answers: no answer, about this team or another, waits while hundreds of
   * objects begin to end. What the team gets before it is closed is ended when this is asked again.
   */
  @OnEvent(teamDeletionRequested, { consumer: 'team-ending' })
  async onForced(
    { team_id, force = false }: TeamDeletionRequested,
    { manager, requestId }: EventDelivery,
  ): Promise<void> {
    if (!force) return;
    const reason = 'The team is being deleted with what it holds.';
    await this.endSome(manager, team_id, { actor: 'system:teams', requestId: requestId ?? null, reason });
  }

  @OnEvent(workspaceDeletionRequested, { consumer: 'workspace-deletion' })
  async onWorkspaceRequested(
    { team_id, workspace_id, attempt_id }: WorkspaceDeletionRequested,
    { manager }: EventDelivery,
  ): Promise<void> {
    await lockForAnswer(manager, team_id);
    await this.answer(manager, { team_id, workspace_id }, attempt_id);
  }

  @OnEvent(deletionCalledOff, { consumer: 'deletion-called-off' })
  onCalledOff({ attempt_id }: TeamDeletionRequested, { manager }: EventDelivery): Promise<void> {
    return reopen(manager, attempt_id);
  }

  private async answer(manager: EntityManager, doomed: Doomed, attempt_id: string): Promise<void> {
    const held = (await this.count(manager, doomed)).filter(({ count }) => count > 0);
    if (held.length === 0) await closeTo(manager, doomed, attempt_id);
    const holds =
      held.length === 0 ? null : held.map(({ name, count }) => `${count} ${name}${count === 1 ? '' : 's'}`).join(', ');
    const remaining = held.map(({ kind, count }) => ({ kind, count }));
    await this.outbox.add(manager, teamDeletionAnswered, {
      team_id: doomed.team_id,
      attempt_id,
      holder: this.holder,
      holds,
      remaining,
    });
  }
}
