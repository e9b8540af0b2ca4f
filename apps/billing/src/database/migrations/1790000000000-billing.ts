import { createIdempotencyTable, dropIdempotencyTable } from '@atoll/database';
import { createEventTables, dropEventTables } from '@atoll/events';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Instants that are calculated with are epoch milliseconds and quantities are 10^-9 units, both bigint: exact, and
 * added up without numeric. Facts and segments are many, and written by one statement that finds their timeline and
 * series itself: no foreign keys on them.
 */
const tables = [
  `CREATE TABLE team (
    no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    name text,
    revision bigint NOT NULL DEFAULT 0
  )`,
  `CREATE TABLE workspace (
    id uuid PRIMARY KEY,
    team_id uuid NOT NULL,
    name text NOT NULL,
    is_deleted boolean NOT NULL DEFAULT false
  )`,
  `CREATE INDEX ON workspace (team_id)`,
  `CREATE TABLE region (
    region_id bigint PRIMARY KEY,
    name text
  )`,
  `CREATE TABLE team_snapshot (
    completed_at timestamptz(3) PRIMARY KEY
  )`,
  `CREATE TABLE sku (
    sku text PRIMARY KEY,
    unit text NOT NULL
  )`,
  `CREATE TABLE price (
    id uuid PRIMARY KEY,
    sku text NOT NULL REFERENCES sku,
    team_id uuid,
    valid_from timestamptz(3) NOT NULL,
    unit_price numeric(19,9) NOT NULL CHECK (unit_price >= 0),
    created_at timestamptz(3) NOT NULL,
    replaced_at timestamptz(3)
  )`,
  `CREATE UNIQUE INDEX price_in_force ON price (sku, team_id, valid_from) NULLS NOT DISTINCT WHERE replaced_at IS NULL`,
  `CREATE INDEX ON price (created_at, id)`,
  `CREATE TABLE price_audit (
    id uuid PRIMARY KEY,
    price_id uuid NOT NULL REFERENCES price,
    sku text NOT NULL,
    team_id uuid,
    valid_from timestamptz(3) NOT NULL,
    price_before numeric(19,9),
    price_after numeric(19,9) NOT NULL,
    user_id uuid,
    request_id text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  `CREATE TABLE series (
    no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_no integer NOT NULL REFERENCES team,
    workspace_id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('gpuaas_pool', 'pod', 'vm', 'baremetal', 'shared_storage')),
    sku text NOT NULL,
    region_id bigint,
    pool_id bigint
  )`,
  `CREATE UNIQUE INDEX series_of_team ON series (team_no, workspace_id, kind, sku, region_id, pool_id) NULLS NOT DISTINCT`,
  `CREATE TABLE timeline (
    no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_no integer NOT NULL REFERENCES team,
    resource_id text NOT NULL,
    sku text NOT NULL,
    UNIQUE (team_no, resource_id, sku)
  )`,
  // Bytewise: which of two facts of one instant holds must not depend on a language.
  `CREATE TABLE usage_fact (
    source text COLLATE "C",
    id text COLLATE "C",
    timeline_no integer NOT NULL,
    series_no integer NOT NULL,
    time_ms bigint NOT NULL,
    sequence bigint NOT NULL,
    quantity_nano bigint NOT NULL CHECK (quantity_nano >= 0),
    resource_name text,
    attributes jsonb,
    PRIMARY KEY (source, id)
  )`,
  `CREATE INDEX ON usage_fact (timeline_no, time_ms)`,
  // [start, end) × quantity: what the facts of a timeline come to, cut at the ends of UTC months.
  `CREATE TABLE segment (
    start_ms bigint,
    end_ms bigint NOT NULL,
    quantity_nano bigint NOT NULL CHECK (quantity_nano > 0),
    team_no integer NOT NULL,
    series_no integer NOT NULL,
    timeline_no integer,
    PRIMARY KEY (timeline_no, start_ms),
    CHECK (end_ms > start_ms)
  )`,
  `CREATE INDEX segment_of_team ON segment (team_no, start_ms) INCLUDE (end_ms, quantity_nano, series_no, timeline_no)`,
  // What a timeline holds now. A table of its own, small and often written, so that the large one is only ever added to
  // as time goes on.
  `CREATE TABLE open_segment (
    start_ms bigint NOT NULL,
    quantity_nano bigint NOT NULL CHECK (quantity_nano > 0),
    timeline_no integer PRIMARY KEY,
    team_no integer NOT NULL,
    series_no integer NOT NULL
  ) WITH (fillfactor = 70)`,
  `CREATE INDEX ON open_segment (team_no)`,
];

export class Billing1790000000000 implements MigrationInterface {
  readonly name = 'Billing1790000000000';

  async up(runner: QueryRunner): Promise<void> {
    await createIdempotencyTable(runner, 'billing');
    await createEventTables(runner, 'billing');
    for (const statement of tables) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'DROP TABLE open_segment, segment, usage_fact, timeline, series, price_audit, price, sku, team_snapshot, region, workspace, team',
    );
    await dropEventTables(runner, 'billing');
    await dropIdempotencyTable(runner, 'billing');
  }
}
