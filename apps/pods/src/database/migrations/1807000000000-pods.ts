import {
  createCallNonceTable,
  createIdempotencyTable,
  dropCallNonceTable,
  dropIdempotencyTable,
} from '@atoll/database';
import { createEventTables, dropEventTables } from '@atoll/events';
import { addLanes, createHistoryTable, dropHistoryTable, dueIndex, machineColumns } from '@atoll/state-machine';
import {
  addWorkspaceRevisions,
  createClosingTables,
  createTeamDirectoryTables,
  dropClosingTables,
  dropTeamDirectoryTables,
} from '@atoll/team-directory';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const live = `state NOT IN ('stopped', 'failed', 'deleted')`;

const tables = [
  `CREATE TABLE pod (
    pod_id uuid PRIMARY KEY,
    pod_name text NOT NULL UNIQUE,
    name text NOT NULL,
    team_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    subscription_id bigint NOT NULL,
    gpuaas_id bigint NOT NULL,
    region_id bigint NOT NULL,
    profile text NOT NULL,
    image text NOT NULL,
    reference text,
    vgpus integer NOT NULL,
    cpu numeric(9,2),
    memory_gb numeric(9,2),
    command jsonb NOT NULL,
    sealed_env text,
    ports jsonb NOT NULL,
    volumes jsonb NOT NULL,
    restart text NOT NULL,
    max_duration_minutes integer,
    idle_stop jsonb,
    start integer NOT NULL,
    run integer NOT NULL DEFAULT 0,
    restarts integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    next_run_at timestamptz(3),
    slices jsonb NOT NULL DEFAULT '[]',
    end_reason text,
    exit_code integer,
    started_at timestamptz(3),
    stops_at timestamptz(3),
    is_billed boolean NOT NULL DEFAULT false,
    created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    ${machineColumns}
  )`,
  'CREATE INDEX ON pod (team_id, created_at, pod_id)',
  'CREATE INDEX ON pod (subscription_id)',
  `CREATE INDEX pod_live_of_team ON pod (team_id, created_at, pod_id) WHERE ${live}`,
  `CREATE INDEX pod_live_of_cluster ON pod (gpuaas_id, pod_id) WHERE ${live}`,
  dueIndex('pod'),
  `CREATE TABLE pod_run (
    pod_id uuid,
    run integer,
    gpuaas_id bigint NOT NULL,
    ended_at timestamptz(3),
    is_log_read boolean NOT NULL DEFAULT false,
    PRIMARY KEY (pod_id, run)
  )`,
  'CREATE INDEX pod_run_ended ON pod_run (ended_at) WHERE ended_at IS NOT NULL',
];

export class Pods1807000000000 implements MigrationInterface {
  readonly name = 'Pods1807000000000';

  async up(runner: QueryRunner): Promise<void> {
    await createIdempotencyTable(runner, 'pods');
    await createCallNonceTable(runner, 'pods');
    await createEventTables(runner, 'pods');
    await createTeamDirectoryTables(runner, 'pods');
    await addWorkspaceRevisions(runner, 'pods');
    await createClosingTables(runner, 'pods');
    await createHistoryTable(runner);
    for (const statement of tables) await runner.query(statement);
    await addLanes(runner, 'pod');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE pod_run, pod');
    await dropHistoryTable(runner);
    await dropClosingTables(runner, 'pods');
    await dropTeamDirectoryTables(runner, 'pods');
    await dropEventTables(runner, 'pods');
    await dropCallNonceTable(runner, 'pods');
    await dropIdempotencyTable(runner, 'pods');
  }
}
