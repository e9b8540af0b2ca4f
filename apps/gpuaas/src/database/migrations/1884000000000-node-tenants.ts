import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Nodes with tenants are found among all that wait to be initialised. */
export class NodeTenants1884000000000 implements MigrationInterface {
  readonly name = 'NodeTenants1884000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE node ADD COLUMN IF NOT EXISTS has_tenants boolean NOT NULL DEFAULT false');
    await createIndex(
      runner,
      `CREATE INDEX node_not_begun_held ON node (node_id) WHERE state = 'initialising' AND deadline_at IS NULL AND has_tenants`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX node_not_begun_held');
    await runner.query('ALTER TABLE node DROP has_tenants');
  }
}
