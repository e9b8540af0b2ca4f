import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** GPUs and nodes that wait to be begun are found among any number of others. */
export class Portions1883000000000 implements MigrationInterface {
  readonly name = 'Portions1883000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(
      runner,
      `CREATE INDEX gpu_not_begun ON gpu (entered_at, gpu_id) WHERE state = 'preparing' AND deadline_at IS NULL`,
    );
    await createIndex(
      runner,
      `CREATE INDEX gpu_not_begun_leased ON gpu (gpu_id) WHERE state = 'preparing' AND deadline_at IS NULL AND (slots_used <> 0 OR turns_used <> 0)`,
    );
    await createIndex(
      runner,
      `CREATE INDEX node_not_begun ON node (entered_at, node_id) WHERE state = 'initialising' AND deadline_at IS NULL`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX gpu_not_begun_leased');
    for (const [table, state] of [
      ['gpu', 'preparing'],
      ['node', 'initialising'],
    ] as const) {
      await runner.query(`DROP INDEX ${table}_not_begun`);
      // The release before begins each row as it enters its state.
      await runner.query(
        `UPDATE ${table} SET due_at = clock_timestamp(), deadline_at = clock_timestamp() + interval '60 seconds'
         WHERE state = '${state}' AND deadline_at IS NULL`,
      );
    }
  }
}
