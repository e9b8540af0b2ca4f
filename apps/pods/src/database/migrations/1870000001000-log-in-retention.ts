import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** For the removal of old log-ins. */
export class LogInRetention1870000001000 implements MigrationInterface {
  readonly name = 'LogInRetention1870000001000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(runner, 'CREATE INDEX ssh_log_in_began_at_idx ON ssh_log_in (began_at)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX ssh_log_in_began_at_idx');
  }
}
