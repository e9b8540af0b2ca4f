import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A subscription has who asked for it: all that one person asks for shares one place in the queue of a pool. */
export class RequestersOfSubscriptions1894000000000 implements MigrationInterface {
  readonly name = 'RequestersOfSubscriptions1894000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE subscription ADD COLUMN requested_by uuid');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE subscription DROP COLUMN requested_by');
  }
}
