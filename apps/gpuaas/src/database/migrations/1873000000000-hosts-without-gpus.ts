import type { MigrationInterface, QueryRunner } from 'typeorm';

export class HostsWithoutGpus1873000000000 implements MigrationInterface {
  readonly name = 'HostsWithoutGpus1873000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE baremetal_node ALTER gpu_model DROP NOT NULL');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`UPDATE baremetal_node SET gpu_model = 'cpu' WHERE gpu_model IS NULL`);
    await runner.query('ALTER TABLE baremetal_node ALTER gpu_model SET NOT NULL');
  }
}
