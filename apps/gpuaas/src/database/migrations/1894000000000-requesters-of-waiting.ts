import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A waiting request has who made it: what one person requests for many teams has one share of the queue of a pool. */
export class RequestersOfWaiting1894000000000 implements MigrationInterface {
  readonly name = 'RequestersOfWaiting1894000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE waiting_request ADD COLUMN requested_by text');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE waiting_request DROP COLUMN requested_by');
  }
}
