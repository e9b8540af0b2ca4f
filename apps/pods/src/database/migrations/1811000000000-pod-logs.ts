import type { MigrationInterface, QueryRunner } from 'typeorm';

const dayNs = '86400000000000';

/**
 * `log_line` has no entity: TypeORM knows no partitions. A day (UTC) is a partition, `log_line_20261122`, which the two
 * functions make and drop. Positions are nanoseconds since 1970.
 */
const tables = [
  `CREATE TABLE log_scope (
    no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id uuid NOT NULL,
    gpuaas_id bigint NOT NULL,
    UNIQUE (team_id, gpuaas_id)
  )`,
  `CREATE TABLE log_source (
    no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pod_id uuid NOT NULL,
    pod_name text NOT NULL,
    is_platform boolean NOT NULL,
    scope_no integer NOT NULL REFERENCES log_scope,
    run integer NOT NULL DEFAULT 0,
    cursor text,
    last_ns bigint NOT NULL DEFAULT 0,
    reader_id uuid,
    changed_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (pod_id, is_platform)
  )`,
  'CREATE INDEX ON log_source (scope_no)',
  `CREATE TABLE log_reader (
    id uuid PRIMARY KEY,
    alive_until timestamptz(3) NOT NULL
  )`,
  `CREATE TABLE platform_line (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pod_id uuid NOT NULL,
    at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    message text NOT NULL
  )`,
  'CREATE INDEX ON platform_line (pod_id, id)',
  `CREATE TABLE log_volume (
    team_id uuid,
    day date,
    bytes bigint NOT NULL,
    PRIMARY KEY (team_id, day)
  )`,
  `CREATE TABLE log_line (
    scope_no integer NOT NULL,
    source_no integer NOT NULL,
    at_ns bigint NOT NULL,
    stream smallint,
    message text NOT NULL
  ) PARTITION BY RANGE (at_ns)`,
  'CREATE INDEX log_line_of_scope ON log_line (scope_no, at_ns, source_no)',
  'CREATE INDEX log_line_of_source ON log_line (source_no, at_ns)',
  // Attached, not created as a partition: that would lock out those who read the table.
  `CREATE FUNCTION make_log_partition(day date) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      name text := 'log_line_' || to_char(day, 'YYYYMMDD');
      first bigint := (day - date '1970-01-01') * ${dayNs};
    BEGIN
      PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' log partitions', 0));
      IF to_regclass(name) IS NULL THEN
        EXECUTE format('CREATE TABLE %I (LIKE log_line INCLUDING DEFAULTS)', name);
        EXECUTE format('ALTER TABLE log_line ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', name, first, first + ${dayNs});
      END IF;
    END $$`,
  `CREATE FUNCTION drop_log_partitions(before date) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      name text;
    BEGIN
      FOR name IN
        SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'log_line'::regclass AND relname < 'log_line_' || to_char(before, 'YYYYMMDD')
      LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I', name);
      END LOOP;
    END $$`,
];

export class PodLogs1811000000000 implements MigrationInterface {
  readonly name = 'PodLogs1811000000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of tables) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION make_log_partition, drop_log_partitions');
    await runner.query('DROP TABLE log_line, log_volume, platform_line, log_reader, log_source, log_scope');
  }
}
