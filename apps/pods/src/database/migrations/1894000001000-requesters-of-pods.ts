import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A pod has who asked for its present start: its request to a pool counts for them while it waits. */
export class RequestersOfPods1894000001000 implements MigrationInterface {
  readonly name = 'RequestersOfPods1894000001000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pod ADD COLUMN requested_by text');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pod DROP COLUMN requested_by');
  }
}
