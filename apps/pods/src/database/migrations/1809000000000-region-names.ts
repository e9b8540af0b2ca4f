import type { MigrationInterface, QueryRunner } from 'typeorm';

export class RegionNames1809000000000 implements MigrationInterface {
  readonly name = 'RegionNames1809000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE pod ADD "region_name" text NOT NULL DEFAULT ''`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pod DROP COLUMN "region_name"');
  }
}
