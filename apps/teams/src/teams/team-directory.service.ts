import { requireService, type CallContext } from '@atoll/contracts';
import {
  maxWorkspacesPerUpdate,
  type HeldCredential,
  type HeldCredentials,
  type LiveCredential,
  type LiveCredentials,
  type LookUpRoles,
  type LookUpTeams,
  type RoleInTeam,
  type RolesInTeams,
  type TeamsAfter,
  type TeamStanding,
  type TeamUpdate,
  type TeamUpdates,
  type WorkspaceStanding,
} from '@atoll/contracts/teams';
import { nilId, Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { isAlive } from '../sessions/session-policy.js';

const pageSize = 500;

/** A team, and one of its workspaces where the row is about one. */
interface DirectoryRow extends TeamStanding {
  team_id: string;
  revision: number;
  workspace_id: string | null;
  workspace_name: string | null;
}

const columns = `t.id AS team_id, t.revision, t.name, t.is_suspended,
  CASE WHEN t.deleted_at IS NULL THEN t.status ELSE 'deleted' END AS status,
  (SELECT id FROM workspace WHERE team_id = t.id AND is_default) AS default_workspace_id,
  w.id AS workspace_id, w.name AS workspace_name`;

/** `$3` workspaces after the workspace `$2` of the team `$1`. */
const pageQuery = `SELECT ${columns} FROM team t LEFT JOIN workspace w ON w.team_id = t.id
  WHERE t.id >= $1::uuid AND (t.id > $1 OR w.id > $2::uuid) ORDER BY t.id, w.id LIMIT $3`;

/** The teams `$1`, and the workspaces `$2` with their teams, of the teams `$3` where that is not null. */
const lookUpQuery = `SELECT ${columns} FROM team t LEFT JOIN workspace w ON false WHERE t.id = ANY ($1::uuid[])
  UNION ALL
  SELECT ${columns} FROM workspace w JOIN team t ON t.id = w.team_id
    WHERE w.id = ANY ($2::uuid[]) AND ($3::uuid[] IS NULL OR t.id = ANY ($3))
  ORDER BY team_id, workspace_id`;

/** Of the pairs of the users `$1` and the teams `$2`. */
const rolesQuery = `SELECT m.user_id, m.team_id, m.role, t.is_suspended, m.status = 'invited' AS is_invited,
    t.require_second_factor AS requires_second_factor, m.required_factor_at_join IS DISTINCT FROM false AS required_factor_at_join
  FROM unnest($1::uuid[], $2::uuid[]) AS asked (user_id, team_id)
    JOIN membership m ON m.team_id = asked.team_id AND m.user_id = asked.user_id
    JOIN team t ON t.id = m.team_id AND t.deleted_at IS NULL`;

/** Of the keys `$1` and the sessions `$2`. */
const liveCredentialsQuery = `SELECT 'key' AS kind, k.id, true AS has_second_factor, k.replaced_at IS NOT NULL AS is_replaced,
    k.lacks_second_factor AS makes_keys_without_factor, k.team_id IS NULL AND NOT u.platform_admin AS is_whole_key
    FROM api_key k JOIN "user" u ON u.id = k.user_id
    WHERE k.id = ANY ($1::uuid[]) AND k.revoked_at IS NULL AND (k.expiry_date IS NULL OR k.expiry_date > now())
  UNION ALL SELECT 'session' AS kind, s.id, s.has_second_factor OR u.platform_admin, false, NOT s.has_second_factor, false
    FROM session s JOIN "user" u ON u.id = s.user_id WHERE s.id = ANY ($2::uuid[]) AND ${isAlive}`;

/** Teams for the other services' projections. */
@Injectable()
export class TeamDirectoryService {
  constructor(private readonly statements: Statements) {}

  async page({ team_id = nilId, workspace_id = nilId }: TeamsAfter, { caller }: CallContext): Promise<TeamUpdates> {
    requireService(caller);
    // One more than the page, which tells whether the last team's workspaces go on.
    const rows = await this.statements.query<DirectoryRow>(pageQuery, [team_id, workspace_id, pageSize + 1]);
    const updates = updatesOf(rows.slice(0, pageSize));
    const continued = new Set([team_id, rows[pageSize]?.team_id]);
    const pieces = Map.groupBy(updates, (update) => update.team_id);
    return {
      updates: updates.map((update) => ({
        ...update,
        is_complete: !continued.has(update.team_id) && pieces.get(update.team_id)?.length === 1,
      })),
    };
  }

  async lookUp(
    { team_ids = [], workspace_ids = [], within_team_ids }: LookUpTeams,
    { caller }: CallContext,
  ): Promise<TeamUpdates> {
    requireService(caller);
    const values = [team_ids, workspace_ids, within_team_ids ?? null];
    return { updates: updatesOf(await this.statements.query<DirectoryRow>(lookUpQuery, values)) };
  }

  async roles({ members }: LookUpRoles, { caller }: CallContext): Promise<RolesInTeams> {
    requireService(caller);
    const values = [members.map(({ user_id }) => user_id), members.map(({ team_id }) => team_id)];
    return { members: await this.statements.query<RoleInTeam>(rolesQuery, values) };
  }

  async liveCredentials({ credentials }: HeldCredentials, { caller }: CallContext): Promise<LiveCredentials> {
    requireService(caller);
    const ids = (wanted: HeldCredential['kind']) =>
      credentials.flatMap(({ kind, id }) => (kind === wanted ? [id] : []));
    const values = [ids('key'), ids('session')];
    return {
      credentials: await this.statements.query<LiveCredential>(liveCredentialsQuery, values),
    };
  }
}

/** Rows in the order of their teams, as updates of bounded size. */
function updatesOf(rows: readonly DirectoryRow[]): TeamUpdate[] {
  const updates: TeamUpdate[] = [];
  for (const row of rows) {
    const last = updates.at(-1);
    const isLastOpen = last?.team_id === row.team_id && last.workspaces.length < maxWorkspacesPerUpdate;
    const update = isLastOpen ? last : emptyUpdate(row);
    if (!isLastOpen) updates.push(update);
    if (row.workspace_id !== null) update.workspaces.push(workspaceOf(row));
  }
  return updates;
}

function emptyUpdate({
  team_id,
  revision,
  name,
  is_suspended,
  status,
  default_workspace_id,
}: DirectoryRow): TeamUpdate {
  return {
    team_id,
    revision,
    team: { name, is_suspended, status, default_workspace_id },
    workspaces: [],
    is_complete: false,
  };
}

function workspaceOf({ workspace_id, workspace_name }: DirectoryRow): WorkspaceStanding {
  return { id: workspace_id ?? '', name: workspace_name ?? '', is_deleted: false };
}
