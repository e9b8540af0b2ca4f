import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Teams take turns with their invitations. Those of the version before count as of one team. */
export class MailByTeam1882000000000 implements MigrationInterface {
  readonly name = 'MailByTeam1882000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE mail ADD COLUMN IF NOT EXISTS team_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'`,
    );
    await createIndex(
      runner,
      `CREATE INDEX mail_team_id_due_at_idx ON mail (team_id, due_at) WHERE kind = 'invitation'`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX mail_team_id_due_at_idx');
    await runner.query('ALTER TABLE mail DROP COLUMN team_id');
  }
}
