import type { MigrationInterface, QueryRunner } from 'typeorm';

const up = [
  `ALTER TABLE "user" ADD verified_at timestamptz(3), ADD confined_to_team_id uuid REFERENCES team`,
  `ALTER TABLE one_time_link ADD team_id uuid REFERENCES team, ADD is_proof boolean NOT NULL DEFAULT true`,
  `CREATE TABLE mail (
    id uuid PRIMARY KEY,
    kind text NOT NULL,
    address text NOT NULL,
    data jsonb NOT NULL,
    link_id uuid,
    tries integer NOT NULL DEFAULT 0,
    due_at timestamptz(3) NOT NULL DEFAULT now(),
    created_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  `CREATE INDEX ON mail (due_at)`,
];

/** Whose address is proven, which links prove it, and mail that is still to be sent. */
export class InvitationLinks1811000000000 implements MigrationInterface {
  readonly name = 'InvitationLinks1811000000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of up) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE mail');
    await runner.query('ALTER TABLE one_time_link DROP COLUMN team_id, DROP COLUMN is_proof');
    await runner.query('ALTER TABLE "user" DROP COLUMN verified_at, DROP COLUMN confined_to_team_id');
  }
}
