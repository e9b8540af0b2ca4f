import { growthRefusal, isPlatformAdmin, notFound, requirePermission, type Caller } from '@atoll/contracts';
import { isAppError, type AppError } from '@atoll/errors';
import { TeamDirectory } from './team-directory.js';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';

/** What something falls to; also a row that does. */
interface Place {
  readonly teamId: string;
  readonly workspaceId: string;
}

/** Which team may have more, and which may not. */
@Injectable()
export class TeamGate {
  constructor(private readonly teams: TeamDirectory) {}

  /**
   * For what gives to a team, before its transaction. Throws `not_found` for another's or an unknown team, `forbidden`,
   * `team_suspended`, and `conflict` for one that is being deleted. `what`: the team, or what of it gets more. Returns
   * the workspace that it falls to: the one asked for, or the default one.
   */
  async requireGrowth(caller: Caller, teamId: string, what = 'team', workspaceId?: string): Promise<string> {
    requirePermission(caller, teamId, 'useResources', what);
    const team = await this.teams.team(teamId);
    const beingDeleted = team.status === 'deleting' ? 'team' : undefined;
    const refusal = growthRefusal({ beingDeleted, isSuspended: team.isSuspended }, isPlatformAdmin(caller));
    if (refusal) throw refusal;
    if (workspaceId === undefined) {
      if (team.defaultWorkspaceId === null) throw notFound('workspace');
      return team.defaultWorkspaceId;
    }
    const workspace = await this.teams.workspace(workspaceId, [teamId]);
    if (workspace.isDeleted) throw notFound('workspace');
    return workspaceId;
  }

  /**
   * For what turns out only within its transaction to give: what `requireGrowth` would throw. Nothing there may wait
   * for a second connection.
   */
  async growthRefusal(caller: Caller, teamId: string, what: string): Promise<AppError | undefined> {
    try {
      await this.requireGrowth(caller, teamId, what);
      return undefined;
    } catch (error) {
      if (isAppError(error)) return error;
      throw error;
    }
  }

  /**
   * Called in the transaction that grants something, after `requireGrowth`: until it ends, this service does not answer
   * that the team, or the workspace, holds nothing. Throws `conflict` if it has already answered so, and
   * `team_suspended` if the team was suspended while the call waited.
   */
  async holdOpen(manager: EntityManager, caller: Caller, { teamId, workspaceId }: Place): Promise<void> {
    const [refusal] = await this.holdAllOpen(manager, [{ caller, teamId, workspaceId }]);
    if (refusal) throw refusal;
  }

  /** As `holdOpen`, for any number of them: two statements. Returns for each, in their order, what that would throw. */
  async holdAllOpen(
    manager: EntityManager,
    all: readonly (Place & { readonly caller: Caller })[],
  ): Promise<(AppError | undefined)[]> {
    // Shared, the lock that `lockForAnswer` takes alone.
    const [teamIds, workspaceIds] = [
      new Set(all.map(({ teamId }) => teamId)),
      new Set(all.map(({ workspaceId }) => workspaceId)),
    ];
    await manager.query(
      `SELECT pg_advisory_xact_lock_shared(hashtextextended(current_schema() || ' team ' || team_id, 0)) FROM unnest($1::text[]) team_id`,
      [[...teamIds].toSorted()],
    );
    // A statement of its own, so that it sees what was committed before the locks were had.
    const found = await manager.query<{ id: string; what: 'suspended' | 'team' | 'workspace' }[]>(
      `SELECT id, 'suspended' AS what FROM team WHERE id = ANY ($1::uuid[]) AND is_suspended
       UNION ALL SELECT team_id, 'team' FROM team_closing WHERE team_id = ANY ($1::uuid[]) AND until > clock_timestamp()
       UNION ALL SELECT workspace_id, 'workspace' FROM workspace_closing WHERE workspace_id = ANY ($2::uuid[]) AND until > clock_timestamp()`,
      [[...teamIds], [...workspaceIds]],
    );
    const suspended = new Set(found.flatMap(({ id, what }) => (what === 'suspended' ? [id] : [])));
    const closed = new Map(found.flatMap(({ id, what }) => (what === 'suspended' ? [] : [[id, what] as const])));
    return all.map(({ caller, teamId, workspaceId }) => {
      const beingDeleted = closed.get(teamId) ?? closed.get(workspaceId);
      return growthRefusal({ beingDeleted, isSuspended: suspended.has(teamId) }, isPlatformAdmin(caller));
    });
  }
}
