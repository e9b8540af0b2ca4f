import { addFailedIndex, dropFailedIndex } from '@atoll/state-machine';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = ['exposure', 'pod', 'shared_volume', 'vm'];

/** The operator asks for what has failed: it is found by an index of its own. */
export class FailedRows1871000000000 implements MigrationInterface {
  readonly name = 'FailedRows1871000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const table of tables) await addFailedIndex(runner, table);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of tables) await dropFailedIndex(runner, table);
  }
}
