import { createCallNonceTable, dropCallNonceTable } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CallNonces1805000000000 implements MigrationInterface {
  readonly name = 'CallNonces1805000000000';

  async up(runner: QueryRunner): Promise<void> {
    await createCallNonceTable(runner, 'gpuaas');
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropCallNonceTable(runner, 'gpuaas');
  }
}
