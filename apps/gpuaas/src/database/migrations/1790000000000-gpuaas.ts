import { createIdempotencyTable, dropIdempotencyTable } from '@atoll/database';
import { createEventTables, dropEventTables } from '@atoll/events';
import { createHistoryTable, dropHistoryTable, dueIndex, machineColumns } from '@atoll/state-machine';
import { createTeamDirectoryTables, dropTeamDirectoryTables } from '@atoll/team-directory';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const numbered = 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY';

const tables = [
  `CREATE TABLE region (
    region_id ${numbered},
    region_name text NOT NULL UNIQUE,
    city text,
    country text,
    created_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  `CREATE TABLE gpuaas (
    gpuaas_id ${numbered},
    region_id bigint NOT NULL REFERENCES region,
    name text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    UNIQUE (region_id, name)
  )`,
  `CREATE TABLE node (
    node_id ${numbered},
    gpuaas_id bigint NOT NULL REFERENCES gpuaas,
    node_name text NOT NULL,
    is_reset boolean NOT NULL DEFAULT false,
    is_cordoned boolean NOT NULL DEFAULT false,
    failures integer NOT NULL DEFAULT 0,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    ${machineColumns},
    UNIQUE (gpuaas_id, node_name)
  )`,
  dueIndex('node'),
  `CREATE TABLE pool (
    pool_id ${numbered},
    gpuaas_id bigint NOT NULL REFERENCES gpuaas,
    pool_name text NOT NULL,
    board text NOT NULL,
    sharing_mode text NOT NULL,
    mechanism text NOT NULL,
    profiles text[] NOT NULL,
    replicas integer,
    overcommit integer NOT NULL,
    allow_fallback boolean NOT NULL,
    temporal_replicas integer,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    UNIQUE (gpuaas_id, pool_name)
  )`,
  `CREATE TABLE gpu (
    gpu_id ${numbered},
    node_id bigint NOT NULL REFERENCES node,
    uuid text NOT NULL UNIQUE,
    board text NOT NULL,
    pool_id bigint REFERENCES pool,
    generation integer NOT NULL DEFAULT 0,
    asked_mode text,
    slots_used bigint NOT NULL DEFAULT 0,
    turns_used bigint NOT NULL DEFAULT 0,
    ${machineColumns}
  ) WITH (fillfactor = 70)`,
  'CREATE INDEX ON gpu (node_id)',
  'CREATE INDEX ON gpu (pool_id)',
  dueIndex('gpu'),
  `CREATE TABLE subscription (
    subscription_id ${numbered},
    team_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    pool_id bigint NOT NULL REFERENCES pool,
    name text,
    profile text NOT NULL,
    v_ram_gb numeric(9,2) NOT NULL,
    vgpus integer NOT NULL,
    active_since timestamptz(3),
    created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    ${machineColumns}
  )`,
  'CREATE INDEX ON subscription (created_at, subscription_id)',
  `CREATE INDEX subscription_live ON subscription (created_at, subscription_id) WHERE state NOT IN ('unsubscribed', 'failed')`,
  'CREATE INDEX ON subscription (team_id, created_at, subscription_id)',
  'CREATE INDEX ON subscription (pool_id)',
  dueIndex('subscription'),
  `CREATE TABLE workload (
    workload_id ${numbered},
    subscription_id bigint NOT NULL REFERENCES subscription,
    team_id uuid NOT NULL,
    name text NOT NULL,
    vgpus integer NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    ${machineColumns}
  )`,
  'CREATE INDEX ON workload (subscription_id)',
  'CREATE INDEX ON workload (team_id, created_at, workload_id)',
  dueIndex('workload'),
  `CREATE TABLE lease (
    lease_id ${numbered},
    gpu_id bigint NOT NULL REFERENCES gpu,
    subscription_id bigint NOT NULL REFERENCES subscription,
    workload_id bigint REFERENCES workload,
    profile text NOT NULL,
    slot_start smallint,
    slot_size smallint NOT NULL,
    turn smallint,
    gpu_instance_id smallint,
    lost_reason text,
    CONSTRAINT lease_place_check CHECK (slot_start IS NOT NULL OR turn IS NOT NULL OR lost_reason IS NOT NULL)
  )`,
  // No slot is held twice, whatever the code above believes. One range type stands for (gpu, slots), so that no
  // extension is needed: 64 to a GPU.
  `ALTER TABLE lease ADD CONSTRAINT lease_slots
    EXCLUDE USING gist (int8range(gpu_id * 64 + slot_start, gpu_id * 64 + slot_start + slot_size) WITH &&) WHERE (slot_start IS NOT NULL)`,
  'CREATE UNIQUE INDEX lease_turn ON lease (gpu_id, turn) WHERE turn IS NOT NULL',
  'CREATE INDEX ON lease (gpu_id)',
  'CREATE INDEX ON lease (subscription_id)',
  'CREATE INDEX ON lease (workload_id)',
  `CREATE TABLE capacity_change (
    id ${numbered},
    team_id uuid NOT NULL
  )`,
  `CREATE TABLE team_capacity (
    team_id uuid PRIMARY KEY,
    revision bigint NOT NULL
  )`,
  `CREATE TABLE team_closing (
    team_id uuid PRIMARY KEY,
    until timestamptz(3) NOT NULL
  )`,
  `CREATE TABLE price (
    price_id uuid PRIMARY KEY,
    sku text NOT NULL,
    team_id uuid,
    valid_from timestamptz(3) NOT NULL,
    unit_price text NOT NULL,
    created_at timestamptz(3) NOT NULL
  )`,
  'CREATE UNIQUE INDEX price_in_force ON price (sku, team_id, valid_from) NULLS NOT DISTINCT',
  `CREATE TABLE price_snapshot (
    completed_at timestamptz(3) PRIMARY KEY
  )`,
  `CREATE TABLE connection (
    subscription_id bigint PRIMARY KEY REFERENCES subscription,
    pods jsonb NOT NULL,
    refreshed_at timestamptz(3) NOT NULL
  )`,
  `CREATE TABLE connection_refresh (
    team_id uuid,
    gpuaas_id bigint,
    started_at timestamptz(3) NOT NULL,
    ended_at timestamptz(3),
    has_failed boolean NOT NULL DEFAULT false,
    PRIMARY KEY (team_id, gpuaas_id)
  )`,
  `CREATE TABLE simulated_device (
    uuid text PRIMARY KEY,
    mode text NOT NULL DEFAULT 'Spatial',
    generation integer NOT NULL DEFAULT 0,
    pending_mode text,
    ready_at timestamptz(3),
    failure text,
    holders text[] NOT NULL DEFAULT '{}'
  )`,
  `CREATE TABLE simulated_fault (
    node_name text,
    operation text,
    kind text NOT NULL,
    times integer NOT NULL,
    PRIMARY KEY (node_name, operation)
  )`,
];

export class Gpuaas1790000000000 implements MigrationInterface {
  readonly name = 'Gpuaas1790000000000';

  async up(runner: QueryRunner): Promise<void> {
    await createIdempotencyTable(runner, 'gpuaas');
    await createEventTables(runner, 'gpuaas');
    await createTeamDirectoryTables(runner, 'gpuaas');
    await createHistoryTable(runner);
    for (const statement of tables) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE simulated_fault, simulated_device, connection_refresh, connection, price_snapshot, price, team_closing, team_capacity,
      capacity_change, lease, workload, subscription, gpu, pool, node, gpuaas, region`);
    await dropHistoryTable(runner);
    await dropTeamDirectoryTables(runner, 'gpuaas');
    await dropEventTables(runner, 'gpuaas');
    await dropIdempotencyTable(runner, 'gpuaas');
  }
}
