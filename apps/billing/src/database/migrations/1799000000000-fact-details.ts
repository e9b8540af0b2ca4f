import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Reports show the latest detail that any fact of a resource or of a pool has. Each index holds the facts that have it,
 * so that the search is one step, however many facts have none.
 */
const indexes = [
  `CREATE INDEX usage_fact_with_name ON usage_fact (timeline_no, time_ms) WHERE resource_name IS NOT NULL`,
  `CREATE INDEX usage_fact_with_used_size ON usage_fact (timeline_no, time_ms) WHERE jsonb_typeof(attributes -> 'used_size_in_gb') = 'number'`,
  `CREATE INDEX usage_fact_with_profile ON usage_fact (timeline_no, time_ms) WHERE attributes ?| '{profile,v_ram_gb}'::text[]`,
  `CREATE INDEX usage_fact_with_pool_name ON usage_fact (series_no, time_ms) WHERE jsonb_typeof(attributes -> 'pool_name') = 'string'`,
];

export class FactDetails1799000000000 implements MigrationInterface {
  readonly name = 'FactDetails1799000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const index of indexes) await createIndex(runner, index);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'DROP INDEX usage_fact_with_name, usage_fact_with_used_size, usage_fact_with_profile, usage_fact_with_pool_name',
    );
  }
}
