import type { MigrationInterface, QueryRunner } from 'typeorm';

const up = [
  `ALTER TABLE session ADD has_second_factor boolean NOT NULL DEFAULT false`,
  `ALTER TABLE team ADD require_second_factor boolean NOT NULL DEFAULT false`,
  `CREATE TABLE second_factor (
    user_id uuid PRIMARY KEY REFERENCES "user",
    sealed text NOT NULL,
    is_confirmed boolean NOT NULL DEFAULT false,
    last_step bigint NOT NULL DEFAULT 0,
    created_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  `CREATE TABLE recovery_code (
    user_id uuid REFERENCES "user",
    digest bytea,
    PRIMARY KEY (user_id, digest)
  )`,
  `CREATE TABLE passkey (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES "user",
    credential_id text NOT NULL UNIQUE,
    public_key bytea NOT NULL,
    counter bigint NOT NULL,
    transports text[] NOT NULL,
    name text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    last_used_at timestamptz(3)
  )`,
  `CREATE INDEX ON passkey (user_id)`,
  `CREATE TABLE passkey_challenge (
    id uuid PRIMARY KEY,
    user_id uuid REFERENCES "user",
    challenge text NOT NULL,
    expires_at timestamptz(3) NOT NULL
  )`,
  `CREATE INDEX ON passkey_challenge (expires_at)`,
];

export class SecondFactors1812000000000 implements MigrationInterface {
  readonly name = 'SecondFactors1812000000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of up) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE passkey_challenge, passkey, recovery_code, second_factor');
    await runner.query('ALTER TABLE team DROP COLUMN require_second_factor');
    await runner.query('ALTER TABLE session DROP COLUMN has_second_factor');
  }
}
