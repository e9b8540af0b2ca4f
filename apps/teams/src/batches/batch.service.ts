import {
  isPlatformAdmin,
  notFound,
  requirePermission,
  requirePlatformAdmin,
  teamsThatAllow,
  type CallContext,
  type TeamPath,
} from '@atoll/contracts';
import {
  type FindMembers,
  type FoundMember,
  type FindWorkspaces,
  type FoundMembers,
  type FoundWorkspaces,
  type NamedTeam,
  type NamedTeams,
  type TeamDeletion,
  type TeamsNamedAfter,
} from '@atoll/contracts/teams';
import { nilId, Statements } from '@atoll/database';
import { isAppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { isManager } from '../members/member-rules.js';
import { ForcedDeletionService } from '../teams/forced-deletion.service.js';
import { findMembersQuery } from './find-members-query.js';

const namesQuery = `SELECT id, name, policy_id FROM team WHERE deleted_at IS NULL AND id > $1 ORDER BY id LIMIT 1000`;

/** The workspaces `$1`, of the teams `$2` where that is not null. */
const workspacesQuery = `SELECT w.id, w.name, w.team_id, t.name AS team_name FROM workspace w JOIN team t ON t.id = w.team_id
  WHERE w.id = ANY ($1::uuid[]) AND t.deleted_at IS NULL AND ($2::uuid[] IS NULL OR t.id = ANY ($2)) ORDER BY w.id`;

/** Teams and members as lists of many need them. */
@Injectable()
export class BatchesService {
  constructor(
    private readonly statements: Statements,
    private readonly forced: ForcedDeletionService,
  ) {}

  async names({ team_id = nilId }: TeamsNamedAfter, { caller }: CallContext): Promise<NamedTeams> {
    requirePlatformAdmin(caller);
    return { teams: await this.statements.query<NamedTeam>(namesQuery, [team_id]) };
  }

  async findMembers(
    { team_id, page, limit, search = '' }: FindMembers,
    { caller }: CallContext,
  ): Promise<FoundMembers> {
    requirePermission(caller, team_id, 'readTeam');
    const values = [team_id, search, limit, page, isManager(caller, team_id)];
    const [row] = await this.statements.query<{ total: number; data: FoundMember[]; page: number; is_team: boolean }>(
      findMembersQuery,
      values,
    );
    if (!row?.is_team) throw notFound('team');
    return { data: row.data, pagination: { page: row.page, limit, total: row.total } };
  }

  async workspaces({ workspace_ids }: FindWorkspaces, { caller }: CallContext): Promise<FoundWorkspaces> {
    const values = [workspace_ids, teamsThatAllow(caller, 'readTeam')];
    return {
      workspaces: await this.statements.query<FoundWorkspaces['workspaces'][number]>(workspacesQuery, values),
    };
  }

  async end(team: TeamPath, context: CallContext): Promise<TeamDeletion> {
    try {
      return await this.forced.delete(team, context);
    } catch (error) {
      const isGone = isAppError(error) && error.code === 'not_found' && isPlatformAdmin(context.caller);
      if (isGone && (await this.wasDeleted(team))) return { deleting: null };
      throw error;
    }
  }

  private async wasDeleted({ team_id }: TeamPath): Promise<boolean> {
    const rows = await this.statements.query('SELECT FROM team WHERE id = $1 AND deleted_at IS NOT NULL', [team_id]);
    return rows.length > 0;
  }
}
