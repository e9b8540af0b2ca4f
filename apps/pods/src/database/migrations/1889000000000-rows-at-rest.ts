import { addRestIndexes, dropRestIndexes } from '@atoll/state-machine';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = ['exposure', 'pod', 'shared_volume', 'vm'];

/** Workers find what is under way beside any number of rows at rest that are to be looked at again. */
export class RowsAtRest1889000000000 implements MigrationInterface {
  readonly name = 'RowsAtRest1889000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const table of tables) await addRestIndexes(runner, table);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of tables) await dropRestIndexes(runner, table);
  }
}
