/** The database in which simulated clusters live. Its connections are the caller's. */
export interface SimulatedStore {
  query<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>;
}

const schema = 'simulated_cluster';
/** In SQL: its tables. */
export const tables = {
  run: `${schema}.run`,
  line: `${schema}.line`,
  fault: `${schema}.fault`,
  door: `${schema}.door`,
  claim: `${schema}.claim`,
  volume: `${schema}.volume`,
} as const;

const runs = `CREATE TABLE IF NOT EXISTS ${tables.run} (
  cluster text, kind text, id text, run integer,
  name text NOT NULL,
  spec jsonb NOT NULL,
  requested_at timestamptz(3) NOT NULL,
  ready_at timestamptz(3) NOT NULL,
  trouble text,
  ends_at timestamptz(3),
  exit_code integer,
  is_out_of_memory boolean NOT NULL DEFAULT false,
  stop_requested_at timestamptz(3),
  PRIMARY KEY (cluster, kind, id, run)
)`;

/** Log lines that doors and shells add to a run; the lines of its process are derived from its row. */
const lines = `CREATE TABLE IF NOT EXISTS ${tables.line} (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cluster text NOT NULL, id text NOT NULL, run integer NOT NULL,
  at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  message text NOT NULL
)`;

const faults = `CREATE TABLE IF NOT EXISTS ${tables.fault} (
  cluster text, operation text, kind text NOT NULL, times integer NOT NULL, PRIMARY KEY (cluster, operation)
)`;

const doors = `CREATE TABLE IF NOT EXISTS ${tables.door} (
  cluster text, id text, run integer,
  pod_id text NOT NULL,
  transport text NOT NULL,
  port integer NOT NULL,
  external_port integer NOT NULL,
  sealed_tls text,
  is_closing boolean NOT NULL DEFAULT false,
  opened_by uuid,
  trouble text,
  requested_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  changed_at timestamptz(3),
  PRIMARY KEY (cluster, id, run)
)`;

const volumes = `CREATE TABLE IF NOT EXISTS ${tables.volume} (
  cluster text, id text,
  size_gb integer NOT NULL,
  used_bytes bigint NOT NULL DEFAULT 0,
  requested_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (cluster, id)
)`;

/** Those of earlier releases do not say whose they are. */
const teamsOfVolumes = `ALTER TABLE ${tables.volume} ADD COLUMN IF NOT EXISTS team_id text NOT NULL DEFAULT ''`;

/** Which process listens. */
const claims = `CREATE TABLE IF NOT EXISTS ${tables.claim} (name text PRIMARY KEY, holder uuid NOT NULL, until timestamptz(3) NOT NULL)`;

const statements = [
  `CREATE SCHEMA IF NOT EXISTS ${schema}`,
  runs,
  `CREATE INDEX IF NOT EXISTS run_ready ON ${tables.run} (ready_at)`,
  `CREATE INDEX IF NOT EXISTS run_ends ON ${tables.run} (ends_at) WHERE ends_at IS NOT NULL`,
  lines,
  `CREATE INDEX IF NOT EXISTS line_of_run ON ${tables.line} (cluster, id, run, at, no)`,
  faults,
  doors,
  `CREATE INDEX IF NOT EXISTS door_changed ON ${tables.door} (changed_at)`,
  claims,
  volumes,
  teamsOfVolumes,
];

const objects = [
  ...Object.values(tables),
  ...['run_ready', 'run_ends', 'line_of_run', 'door_changed'].map((name) => `${schema}.${name}`),
];

const isWhole = `SELECT bool_and(to_regclass(name) IS NOT NULL)
    AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('${tables.volume}') AND attname = 'team_id') AS "isWhole"
  FROM unnest('{${objects.join(',')}}'::text[]) name`;

/** Creates what is missing. Processes that start at once wait for each other. */
export async function prepareStore(store: SimulatedStore): Promise<void> {
  // To find that nothing is to be done locks nothing: a dump of the database may run, and others would wait behind it.
  const [found] = await store.query<{ isWhole: boolean }>(isWhole);
  if (found?.isWhole) return;
  // One simple query is one transaction, and the locks end with it.
  const locks = `SELECT set_config('lock_timeout', '1200', true), pg_advisory_xact_lock(hashtextextended('${schema}', 0))`;
  await store.query([locks, ...statements].join(';\n'));
}
