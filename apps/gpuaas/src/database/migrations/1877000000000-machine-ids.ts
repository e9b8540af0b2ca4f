import type { MigrationInterface, QueryRunner } from 'typeorm';

export class MachineIds1877000000000 implements MigrationInterface {
  readonly name = 'MachineIds1877000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE baremetal_node ADD machine_id text');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE baremetal_node DROP machine_id');
  }
}
