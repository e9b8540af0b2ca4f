import { nilId, Removals, Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { orCheckAgain } from '../model/account-check.entity.js';

const batchSize = 1_000;
const teamsPerLook = 100;

/**
 * The next deleted teams after that of `$1` and `$2`. Those of the last hour come later, so that none is passed over
 * whose deletion is not committed yet.
 */
const nextTeams = `SELECT id, deleted_at FROM team WHERE deleted_at < now() - interval '1 hour' AND (deleted_at, id) > ($1::timestamptz, $2::uuid)
  ORDER BY deleted_at, id LIMIT ${teamsPerLook}`;

/**
 * Of the teams `$1`, a batch of `$2`, as below. Replicas do not wait for each other. They go before the memberships,
 * with which all that are left would go at once.
 */
const keyRemoval = `DELETE FROM api_key WHERE id IN (
    SELECT id FROM api_key WHERE team_id = ANY ($1::uuid[]) LIMIT $2 FOR UPDATE SKIP LOCKED
  ) RETURNING id`;
const memberRemoval = `WITH removed AS (DELETE FROM membership WHERE id IN (
    SELECT id FROM membership WHERE team_id = ANY ($1::uuid[]) LIMIT $2 FOR UPDATE SKIP LOCKED
  ) RETURNING user_id),
  noted AS (INSERT INTO account_check (user_id, due_at) SELECT DISTINCT user_id, now() FROM removed ORDER BY user_id ${orCheckAgain})
  SELECT FROM removed`;

interface DeletedTeam {
  id: string;
  deleted_at: Date;
}

/**
 * Removes the memberships of deleted teams, invitations among them, and the keys to them: no operation shows them. The
 * teams and their workspaces stay: other services learn from them what bills and the listings of what has ended are
 * about. The accounts of the members are checked next, see `EmptyAccounts`.
 */
@Injectable()
export class DeletedTeams extends Removals {
  /** All before it, and itself, are done. Of each process: the next one passes over them once more. */
  private last: DeletedTeam = { id: nilId, deleted_at: new Date(0) };

  constructor(private readonly statements: Statements) {
    super('the members of deleted teams');
  }

  override async removeSome(): Promise<boolean> {
    const teams = await this.statements.query<DeletedTeam>(nextTeams, [this.last.deleted_at, this.last.id]);
    const batch = [teams.map(({ id }) => id), batchSize];
    const keys = await this.statements.query(keyRemoval, batch);
    if (keys.length === batchSize) return true;
    const members = await this.statements.query(memberRemoval, batch);
    if (members.length === batchSize) return true;
    this.last = teams.at(-1) ?? this.last;
    return teams.length === teamsPerLook;
  }
}
