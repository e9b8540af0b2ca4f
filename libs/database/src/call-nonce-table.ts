import type { QueryRunner } from 'typeorm';

/** For a migration of each service: the calls that have changed something, see `handleOnce`. */
export async function createCallNonceTable(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(
    `CREATE TABLE "${schema}".call_nonce (nonce bytea PRIMARY KEY, expires_at timestamptz NOT NULL)`,
  );
}

export async function dropCallNonceTable(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`DROP TABLE "${schema}".call_nonce`);
}
