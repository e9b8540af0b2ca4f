import {
  notFound,
  pageWindow,
  requirePermission,
  requirePlatformAdmin,
  teamsThatAllow,
  type CallContext,
  type TeamPath,
} from '@atoll/contracts';
import { credentialsChanged, type ListTeams, type Team, type TeamPage, type UpdateTeam } from '@atoll/contracts/teams';
import { requireSomeField, tooManyRequests } from '@atoll/errors';
import { readPage, Statements, Writers } from '@atoll/database';
import { Json, remainingMs, Rpc } from '@atoll/rpc';
import { FairSemaphore } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { requirePermissionNow } from '../members/caller-now.js';
import { isAlive } from '../sessions/session-policy.js';
import { TeamChanges } from '../changes/team-changes.js';
import { allTeamsQuery, isSought, teamQuery, teamText, teamTextQuery } from './team-query.js';
import { TeamEntity } from '../model/team.entity.js';

/** The members of the team `$1` whose session, or key of the user as a whole, may lack a second factor there. */
const withoutFactorQuery = `SELECT m.user_id FROM membership m WHERE m.team_id = $1 AND (
  EXISTS (SELECT FROM session s WHERE s.user_id = m.user_id AND NOT s.has_second_factor AND ${isAlive})
  OR EXISTS (SELECT FROM api_key k WHERE k.user_id = m.user_id AND k.team_id IS NULL AND k.revoked_at IS NULL
    AND (k.lacks_second_factor OR m.status = 'invited')))`;

/** A Team as JSON: with a thousand members and workspaces it takes milliseconds to make an object of it, and back. */
interface TeamText {
  readonly team: string;
}

@Injectable()
export class TeamsService {
  /** Of one user two are read at once: a page may have 100 teams of a thousand members. */
  private readonly pages = new FairSemaphore({ permitsPerKey: 2 }, () => tooManyRequests(1));

  constructor(
    private readonly statements: Statements,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
    private readonly rpc: Rpc,
  ) {}

  async get({ team_id }: TeamPath, { caller }: CallContext): Promise<Json<Team>> {
    requirePermission(caller, team_id, 'readTeam');
    const [row] = await this.statements.query<TeamText>(teamTextQuery, [team_id]);
    if (!row) throw notFound('team');
    return new Json<Team>([Buffer.from(row.team)]);
  }

  async list({ search = '', ...asked }: ListTeams, context: CallContext): Promise<Json<TeamPage>> {
    const { page, limit, offset } = pageWindow(asked, 0);
    const { total, rows } = await this.inTurn(context, () =>
      this.page(teamsThatAllow(context.caller, 'readTeam'), search, [limit, offset]),
    );
    const parts = rows.map(({ team }, at) => Buffer.from(at === 0 ? team : `,${team}`));
    const pagination = JSON.stringify({ page, limit, total });
    return new Json<TeamPage>([Buffer.from('{"data":['), ...parts, Buffer.from(`],"pagination":${pagination}}`)]);
  }

  private inTurn<T>(context: CallContext, work: () => Promise<T>): Promise<T> {
    const { caller } = context;
    if (caller.kind !== 'user' || caller.platformAdmin) return work();
    return this.pages.run(work, { key: caller.userId, patienceMs: remainingMs(context) / 2 });
  }

  /** null: of all teams. */
  private async page(
    teamIds: string[] | null,
    search: string,
    window: [limit: number, offset: number],
  ): Promise<{ total: number; rows: TeamText[] }> {
    if (teamIds === null && search === '') {
      const found = await this.statements.query<{ total: number; team: string | null }>(allTeamsQuery, window);
      return { total: found[0]?.total ?? 0, rows: found.flatMap(({ team }) => (team === null ? [] : [{ team }])) };
    }
    // Another statement for the teams of a user: a plan that served both would read all teams to find these.
    const [from, values] =
      teamIds === null
        ? [`team WHERE deleted_at IS NULL AND ${isSought}`, [search, ...window]]
        : [`team WHERE deleted_at IS NULL AND ${isSought} AND id = ANY ($4::uuid[])`, [search, ...window, teamIds]];
    return readPage<TeamText>(this.statements, {
      from,
      order: 'created_at, id',
      window: 'LIMIT $2 OFFSET $3',
      columns: `${teamText('row')} AS team`,
      values,
    });
  }

  async update({ team_id, ...body }: UpdateTeam, context: CallContext): Promise<Team> {
    requireSomeField(body, 'name', 'description', 'require_second_factor');
    requirePermission(context.caller, team_id, 'manageTeam');
    const { team, userIds } = await this.writers.run(team_id, context, (manager) =>
      this.write(manager, team_id, body, context),
    );
    for (const user_id of userIds) this.rpc.publish(credentialsChanged, { user_id });
    return team;
  }

  /** Returns besides the team those users whose sessions or keys may do more in it now, or less. */
  private async write(
    manager: EntityManager,
    teamId: string,
    body: Omit<UpdateTeam, 'team_id'>,
    context: CallContext,
  ): Promise<{ team: Team; userIds: string[] }> {
    const team = await this.changes.lockForGrowth(manager, teamId, context.caller);
    await requirePermissionNow(manager, context.caller, teamId, 'manageTeam');
    const isRenamed = body.name !== undefined && body.name !== team.name;
    const isFactorChanged =
      body.require_second_factor !== undefined && body.require_second_factor !== team.requireSecondFactor;
    team.name = body.name ?? team.name;
    team.description = body.description ?? team.description;
    team.requireSecondFactor = body.require_second_factor ?? team.requireSecondFactor;
    // No other service is told of these.
    const { description, requireSecondFactor } = team;
    await manager.update(TeamEntity, { id: teamId }, { description, requireSecondFactor });
    if (isRenamed) await this.changes.save(manager, team, context);
    const users = isFactorChanged ? await manager.query<{ user_id: string }[]>(withoutFactorQuery, [teamId]) : [];
    return { team: await readTeam(manager, teamId), userIds: users.map(({ user_id }) => user_id) };
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
