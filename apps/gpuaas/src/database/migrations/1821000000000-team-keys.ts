import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Who may log in to the bare-metal hosts of a team by key. */
export class TeamKeys1821000000000 implements MigrationInterface {
  readonly name = 'TeamKeys1821000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE member_role (
      team_id uuid NOT NULL,
      user_id uuid NOT NULL,
      role text,
      revision bigint NOT NULL,
      PRIMARY KEY (team_id, user_id)
    )`);
    await runner.query('CREATE INDEX ON member_role (user_id)');
    await runner.query(
      'CREATE TABLE user_ssh_keys (user_id uuid PRIMARY KEY, keys text[] NOT NULL, revision bigint NOT NULL)',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE user_ssh_keys, member_role');
  }
}
