import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Nodes that fail are remembered, so that others are preferred to them. */
export class NodeTroubles1890000000000 implements MigrationInterface {
  readonly name = 'NodeTroubles1890000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE node_trouble (
      node_id bigint NOT NULL REFERENCES node,
      operation text NOT NULL,
      failures integer NOT NULL,
      reason text NOT NULL,
      failed_at timestamptz(3) NOT NULL,
      avoided_until timestamptz(3) NOT NULL,
      PRIMARY KEY (node_id, operation)
    )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE node_trouble');
  }
}
