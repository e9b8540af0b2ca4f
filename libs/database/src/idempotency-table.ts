import type { QueryRunner } from 'typeorm';

/** For a service's first migration. */
export async function createIdempotencyTable(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`
    CREATE TABLE "${schema}".idempotency_key (
      id bytea PRIMARY KEY,
      fingerprint text NOT NULL,
      reply json NOT NULL,
      expires_at timestamptz NOT NULL
    )`);
  await queryRunner.query(`CREATE INDEX ON "${schema}".idempotency_key (expires_at)`);
}

export async function dropIdempotencyTable(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`DROP TABLE "${schema}".idempotency_key`);
}
