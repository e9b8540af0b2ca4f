import {
  notFound,
  type CallContext,
  type Caller,
  type FindTeam,
  type TeamChanged,
  type TeamsAfter,
  type TeamsSnapshot,
} from '@atoll/contracts';
import { Statements } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';

const pageSize = 100;

/** A team as the event `teamChanged` tells it. */
const asTold = `json_build_object(
  'team_id', t.id, 'revision', t.revision, 'name', t.name, 'is_suspended', t.is_suspended,
  'status', CASE WHEN t.deleted_at IS NULL THEN t.status ELSE 'deleted' END,
  'workspaces', COALESCE(
    (SELECT json_agg(json_build_object('id', w.id, 'name', w.name) ORDER BY w.created_at, w.id) FROM workspace w WHERE w.team_id = t.id), '[]'))`;

const snapshotQuery = `SELECT ${asTold} AS team FROM team t WHERE t.id > COALESCE($1::uuid, '00000000-0000-0000-0000-000000000000') ORDER BY t.id LIMIT $2`;
const findQuery = `SELECT ${asTold} AS team FROM team t WHERE t.id = COALESCE($1::uuid, (SELECT team_id FROM workspace WHERE id = $2::uuid))`;

/** Teams for the other services' projections. */
@Injectable()
export class TeamDirectoryService {
  constructor(private readonly statements: Statements) {}

  async snapshot({ after }: TeamsAfter, { caller }: CallContext): Promise<TeamsSnapshot> {
    requireService(caller);
    const rows = await this.statements.query<{ team: TeamChanged }>('directory.snapshot', snapshotQuery, [after ?? null, pageSize]);
    return { teams: rows.map(({ team }) => team) };
  }

  async find({ team_id, workspace_id }: FindTeam, { caller }: CallContext): Promise<TeamChanged> {
    requireService(caller);
    if ((team_id === undefined) === (workspace_id === undefined)) {
      throw new AppError('invalid_input', 'One of team_id and workspace_id is needed.', {
        errors: [{ path: 'team_id', code: 'oneOf', message: 'team_id or workspace_id is needed, and not both' }],
      });
    }
    const [row] = await this.statements.query<{ team: TeamChanged }>('directory.find', findQuery, [team_id ?? null, workspace_id ?? null]);
    if (!row) throw notFound('team');
    return row.team;
  }
}

function requireService(caller: Caller): void {
  if (caller.kind !== 'system') throw new AppError('forbidden', 'Only a service may ask this.');
}
