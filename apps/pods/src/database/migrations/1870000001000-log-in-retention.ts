import type { MigrationInterface, QueryRunner } from 'typeorm';

/** For the removal of old log-ins. */
export class LogInRetention1870000001000 implements MigrationInterface {
  readonly name = 'LogInRetention1870000001000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX ON ssh_log_in (began_at)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX ssh_log_in_began_at_idx');
  }
}
