import { createIndex, dropIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Mail that a user waits for is sent before invitations, since there may be many of those. */
export class MailByKind1879000000000 implements MigrationInterface {
  readonly name = 'MailByKind1879000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(runner, 'CREATE INDEX mail_kind_due_at_idx ON mail (kind, due_at)');
    await dropIndex(runner, 'mail_due_at_idx');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX ON mail (due_at)');
    await runner.query('DROP INDEX mail_kind_due_at_idx');
  }
}
