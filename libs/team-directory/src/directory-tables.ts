import type { QueryRunner } from 'typeorm';
import { TeamEntity, TeamSnapshotEntity, WorkspaceEntity } from './known-team.entity.js';

/** What this library adds to the entities of a service. */
export const teamDirectoryEntities = [TeamEntity, TeamSnapshotEntity, WorkspaceEntity];

/** For the first migration of a service that keeps a directory; a later one calls `addWorkspaceRevisions`. */
export async function createTeamDirectoryTables(runner: QueryRunner, schema: string): Promise<void> {
  await runner.query(`CREATE TABLE "${schema}".team (
    no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    name text,
    revision bigint NOT NULL DEFAULT 0
  )`);
  await runner.query(`CREATE TABLE "${schema}".workspace (
    id uuid PRIMARY KEY,
    team_id uuid NOT NULL,
    name text NOT NULL,
    is_deleted boolean NOT NULL DEFAULT false
  )`);
  await runner.query(`CREATE INDEX ON "${schema}".workspace (team_id)`);
  await runner.query(`CREATE TABLE "${schema}".team_snapshot (completed_at timestamptz(3) PRIMARY KEY)`);
  await addTeamStanding(runner, schema);
}

/** For a later migration of a service whose directory is older than these columns. */
export async function addTeamStanding(runner: QueryRunner, schema: string): Promise<void> {
  await runner.query(`ALTER TABLE "${schema}".team
    ADD COLUMN is_suspended boolean NOT NULL DEFAULT false,
    ADD COLUMN status text NOT NULL DEFAULT 'active',
    ADD COLUMN default_workspace_id uuid`);
}

export async function dropTeamStanding(runner: QueryRunner, schema: string): Promise<void> {
  await runner.query(
    `ALTER TABLE "${schema}".team DROP COLUMN is_suspended, DROP COLUMN status, DROP COLUMN default_workspace_id`,
  );
}

/**
 * A revision for each workspace, for a migration after `createTeamDirectoryTables`. Until now each team was received
 * whole, so what is known of its workspaces is as recent as what is known of the team.
 */
export async function addWorkspaceRevisions(runner: QueryRunner, schema: string): Promise<void> {
  await runner.query(`ALTER TABLE "${schema}".team ADD COLUMN complete_revision bigint NOT NULL DEFAULT 0`);
  await runner.query(`ALTER TABLE "${schema}".workspace ADD COLUMN revision bigint NOT NULL DEFAULT 0`);
  await runner.query(`UPDATE "${schema}".team SET complete_revision = revision WHERE revision > 0`);
  // A workspace that is deleted was last named at some earlier revision.
  await runner.query(`UPDATE "${schema}".workspace SET revision = team.revision FROM "${schema}".team
    WHERE team.id = workspace.team_id AND NOT workspace.is_deleted`);
}

export async function dropWorkspaceRevisions(runner: QueryRunner, schema: string): Promise<void> {
  await runner.query(`ALTER TABLE "${schema}".team DROP COLUMN complete_revision`);
  await runner.query(`ALTER TABLE "${schema}".workspace DROP COLUMN revision`);
}

export async function dropTeamDirectoryTables(runner: QueryRunner, schema: string): Promise<void> {
  await runner.query(`DROP TABLE "${schema}".team_snapshot, "${schema}".workspace, "${schema}".team`);
}
