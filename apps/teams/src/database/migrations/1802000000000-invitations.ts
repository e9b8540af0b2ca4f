import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Members who were added by their e-mail address have not agreed to it. Of those there are, only a creator of a team
 * has: the first to become a member in the moment of its creation, with a key that such a call takes.
 */
export class Invitations1802000000000 implements MigrationInterface {
  readonly name = 'Invitations1802000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE membership ADD name text NOT NULL DEFAULT '', ADD status text NOT NULL DEFAULT 'invited'`,
    );
    await runner.query(`UPDATE membership SET name = u.name FROM "user" u WHERE u.id = membership.user_id`);
    await runner.query(`UPDATE membership SET status = 'active' FROM team
      WHERE team.id = membership.team_id AND team.created_at = membership.created_at
        AND NOT EXISTS (SELECT FROM membership first WHERE first.team_id = team.id AND first.id < membership.id)
        AND EXISTS (SELECT FROM api_key WHERE api_key.user_id = membership.user_id AND api_key.team_id IS NULL)`);
    await runner.query(
      `ALTER TABLE membership ADD CONSTRAINT membership_status_check CHECK (status IN ('invited', 'active'))`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE membership DROP COLUMN name, DROP COLUMN status');
  }
}
