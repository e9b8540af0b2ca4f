import type { TeamChanged, TeamUpdate } from '@atoll/contracts/teams';
import { takeTurn } from '@atoll/database';
import type { EntityManager } from 'typeorm';
import { forgetMemberRoles } from './member-roles.js';

/**
 * Writes an update into the projection. Team and workspaces keep the revision at which each was last described, and an
 * older description changes nothing: whatever the order, and however often each update comes, the end is the same.
 *
 * A workspace is deleted where its latest description says so, or where that is older than an update that held all
 * workspaces of the team and did not name it. Of a deleted team no roles of members stay.
 */
export async function applyUpdate(
  manager: EntityManager,
  { team_id, revision, team, workspaces, is_complete }: TeamUpdate,
): Promise<void> {
  // Whoever has begun to give to it (`TeamGate.holdOpen`) commits first: from here on nobody does.
  if (team?.is_suspended === true) await takeTurn(manager, `team ${team_id}`);
  const before = await lockTeam(manager, team_id);
  if (team) {
    await manager.query(
      `UPDATE team SET name = $3, is_suspended = $4, status = $5, default_workspace_id = $6, revision = $2
       WHERE id = $1 AND revision < $2`,
      [team_id, revision, team.name, team.is_suspended, team.status, team.default_workspace_id],
    );
    if (team.status === 'deleted') await forgetMemberRoles(manager, team_id);
  }
  if (workspaces.length > 0) {
    await manager.query(
      `INSERT INTO workspace (id, team_id, name, is_deleted, revision)
       SELECT id, $1, name, is_deleted OR $6, $2 FROM unnest($3::uuid[], $4::text[], $5::boolean[]) described (id, name, is_deleted)
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, is_deleted = excluded.is_deleted, revision = excluded.revision
         WHERE workspace.revision < excluded.revision`,
      [
        team_id,
        revision,
        workspaces.map(({ id }) => id),
        workspaces.map(({ name }) => name),
        workspaces.map(({ is_deleted }) => is_deleted),
        revision < before.completeRevision,
      ],
    );
  }
  if (!is_complete || revision <= before.completeRevision) return;
  await manager.query('UPDATE team SET complete_revision = $2 WHERE id = $1', [team_id, revision]);
  await manager.query(
    'UPDATE workspace SET is_deleted = true WHERE team_id = $1 AND revision < $2 AND NOT is_deleted',
    [team_id, revision],
  );
}

/** What `teamChanged` says, as an update. */
export function updateOf({ team_id, revision, name, is_suspended, status, workspaces }: TeamChanged): TeamUpdate {
  return {
    team_id,
    revision,
    team: { name, is_suspended, status, default_workspace_id: workspaces[0]?.id ?? null },
    workspaces: workspaces.map((workspace) => ({ id: workspace.id, name: workspace.name, is_deleted: false })),
    is_complete: true,
  };
}

/** Updates of one team run one after the other. A team that facts have named before may have a row already. */
async function lockTeam(manager: EntityManager, teamId: string): Promise<{ completeRevision: number }> {
  await manager.query(
    'INSERT INTO team (id) SELECT $1 WHERE NOT EXISTS (SELECT FROM team WHERE id = $1) ON CONFLICT (id) DO NOTHING',
    [teamId],
  );
  const [row] = await manager.query<{ complete_revision: string }[]>(
    'SELECT complete_revision FROM team WHERE id = $1 FOR NO KEY UPDATE',
    [teamId],
  );
  return { completeRevision: Number(row?.complete_revision) };
}
