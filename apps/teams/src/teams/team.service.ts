import {
  notFound,
  pageWindow,
  requirePermission,
  requirePlatformAdmin,
  type CallContext,
  type PageFromZero,
  type TeamPath,
} from '@atoll/contracts';
import { type Team, type TeamPage, type UpdateTeam } from '@atoll/contracts/teams';
import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { PageRow } from '../sql/json.js';
import { Writers } from '../writers/writers.js';
import { requireSomeField } from '../invalid-field.js';
import { requirePermissionNow } from '../members/caller-now.js';
import { TeamChanges } from '../changes/team-changes.js';
import { allTeamsQuery, ownTeamsQuery, teamQuery } from './team-query.js';
import { TeamEntity } from '../model/team.entity.js';

@Injectable()
export class TeamsService {
  constructor(
    private readonly statements: Statements,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
  ) {}

  async get({ team_id }: TeamPath, { caller }: CallContext): Promise<Team> {
    requirePermission(caller, team_id, 'readTeam');
    const [row] = await this.statements.query<{ team: Team }>('teams.get', teamQuery, [team_id]);
    if (!row) throw notFound('team');
    return row.team;
  }

  async list(asked: PageFromZero, { caller }: CallContext): Promise<TeamPage> {
    const { page, limit, offset } = pageWindow(asked, 0);
    const [row] =
      caller.kind === 'system' || caller.platformAdmin
        ? await this.statements.query<PageRow<Team>>('teams.list_all', allTeamsQuery, [limit, offset])
        : await this.statements.query<PageRow<Team>>('teams.list_own', ownTeamsQuery, [
            limit,
            offset,
            caller.teams.filter(({ lacksSecondFactor }) => !lacksSecondFactor).map(({ teamId }) => teamId),
          ]);
    return { data: row?.data ?? [], pagination: { page, limit, total: row?.total ?? 0 } };
  }

  async update({ team_id, ...body }: UpdateTeam, context: CallContext): Promise<Team> {
    requireSomeField(body, 'name', 'description', 'require_second_factor');
    requirePermission(context.caller, team_id, 'manageTeam');
    return this.writers.run(team_id, context, async (manager) => {
      const team = await this.changes.lockForGrowth(manager, team_id, context.caller);
      await requirePermissionNow(manager, context.caller, team_id, 'manageTeam');
      const isRenamed = body.name !== undefined && body.name !== team.name;
      team.name = body.name ?? team.name;
      team.description = body.description ?? team.description;
      team.requireSecondFactor = body.require_second_factor ?? team.requireSecondFactor;
      // No other service knows these.
      const { description, requireSecondFactor } = team;
      await manager.update(TeamEntity, { id: team_id }, { description, requireSecondFactor });
      if (isRenamed) await this.changes.save(manager, team, context);
      return readTeam(manager, team_id);
    });
  }

  async setSuspended({ team_id }: TeamPath, isSuspended: boolean, context: CallContext): Promise<Team> {
    requirePlatformAdmin(context.caller);
    return this.writers.once(team_id, context, async (manager) => {
      const team = await this.changes.lock(manager, team_id);
      if (team.isSuspended !== isSuspended) {
        team.isSuspended = isSuspended;
        await this.changes.save(manager, team, context);
      }
      return readTeam(manager, team_id);
    });
  }
}

/** The Team as the running transaction sees it. */
export async function readTeam(manager: EntityManager, teamId: string): Promise<Team> {
  const [row] = await manager.query<{ team: Team }[]>(teamQuery, [teamId]);
  if (!row) throw notFound('team');
  return row.team;
}
