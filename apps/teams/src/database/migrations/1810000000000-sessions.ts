import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = [
  `CREATE TABLE session (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES "user",
    generation integer NOT NULL DEFAULT 1,
    rotated_at timestamptz(3) NOT NULL DEFAULT now(),
    address text NOT NULL,
    device text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    last_used_at timestamptz(3) NOT NULL DEFAULT now(),
    idle_until timestamptz(3) NOT NULL,
    expires_at timestamptz(3) NOT NULL,
    ended_at timestamptz(3),
    end_reason text
  )`,
  `CREATE INDEX ON session (user_id, last_used_at) WHERE ended_at IS NULL`,
  `CREATE INDEX ON session (expires_at)`,
  `CREATE TABLE signing_key (
    kid text PRIMARY KEY,
    sealed text NOT NULL,
    x text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  `CREATE TABLE password (
    user_id uuid PRIMARY KEY REFERENCES "user",
    hash text NOT NULL,
    changed_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  `CREATE TABLE log_in_bucket (
    id bytea PRIMARY KEY,
    full_at timestamptz(3) NOT NULL
  )`,
  `CREATE INDEX ON log_in_bucket (full_at)`,
  `CREATE TABLE log_in_network (
    user_id uuid REFERENCES "user",
    network text,
    last_used_at timestamptz(3) NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, network)
  )`,
  `CREATE TABLE one_time_link (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES "user",
    email text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    expires_at timestamptz(3) NOT NULL,
    used_at timestamptz(3)
  )`,
  `CREATE INDEX ON one_time_link (user_id) WHERE used_at IS NULL`,
  `CREATE INDEX ON one_time_link (expires_at)`,
];

export class Sessions1810000000000 implements MigrationInterface {
  readonly name = 'Sessions1810000000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of tables) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE one_time_link, log_in_network, log_in_bucket, password, signing_key, session');
  }
}
