import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = [
  `CREATE TABLE ssh_key (
    ssh_key_id uuid PRIMARY KEY,
    user_id uuid NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    fingerprint text NOT NULL,
    public_key text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (user_id, fingerprint)
  )`,
  'CREATE INDEX ON ssh_key (fingerprint)',
  `CREATE TABLE ssh_host_key (
    id integer PRIMARY KEY,
    sealed text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
  )`,
  `CREATE TABLE ssh_log_in (
    log_in_id uuid PRIMARY KEY,
    pod_id uuid NOT NULL,
    pod_name text NOT NULL,
    team_id uuid NOT NULL,
    user_id uuid NOT NULL,
    fingerprint text NOT NULL,
    address text NOT NULL,
    began_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz(3),
    end_reason text
  )`,
  'CREATE INDEX ON ssh_log_in (team_id, began_at)',
];

/** Users' public keys, and the SSH door in front of pods. */
export class Ssh1811000000000 implements MigrationInterface {
  readonly name = 'Ssh1811000000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of tables) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE ssh_log_in, ssh_host_key, ssh_key');
  }
}
