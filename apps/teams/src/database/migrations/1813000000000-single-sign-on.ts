import type { MigrationInterface, QueryRunner } from 'typeorm';

export class SingleSignOn1813000000000 implements MigrationInterface {
  readonly name = 'SingleSignOn1813000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE user_identity (
      issuer text,
      subject text,
      user_id uuid NOT NULL REFERENCES "user",
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      PRIMARY KEY (issuer, subject)
    )`);
    await runner.query('CREATE INDEX ON user_identity (user_id)');
    await runner.query(`CREATE TABLE sso_flow (
      id uuid PRIMARY KEY,
      provider text NOT NULL,
      expires_at timestamptz(3) NOT NULL
    )`);
    await runner.query('CREATE INDEX ON sso_flow (expires_at)');
    await runner.query('ALTER TABLE membership ADD sso_provider text');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE membership DROP COLUMN sso_provider');
    await runner.query('DROP TABLE sso_flow, user_identity');
  }
}
