import { createIndex, dropIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The tables whose foreign keys are checked for each user that is removed, and had no index for that. */
const tables = ['api_key', 'one_time_link', 'passkey_challenge', 'session'];

/** Accounts that have lost a membership are checked, and removed if they have nothing. */
export class EmptyAccounts1890000000000 implements MigrationInterface {
  readonly name = 'EmptyAccounts1890000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'CREATE TABLE IF NOT EXISTS account_check (user_id uuid PRIMARY KEY, due_at timestamptz(3) NOT NULL)',
    );
    await runner.query('CREATE INDEX IF NOT EXISTS account_check_due_at_idx ON account_check (due_at)');
    for (const table of tables) await createIndex(runner, `CREATE INDEX ${table}_of_user ON ${table} (user_id)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of tables) await dropIndex(runner, `${table}_of_user`);
    await runner.query('DROP TABLE account_check');
  }
}
