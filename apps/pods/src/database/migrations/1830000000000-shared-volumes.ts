import { addLanes, dueIndex, machineColumns } from '@atoll/state-machine';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class SharedVolumes1830000000000 implements MigrationInterface {
  readonly name = 'SharedVolumes1830000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE gpu_service (
      gpuaas_id bigint PRIMARY KEY,
      region_id bigint NOT NULL,
      region_name text NOT NULL,
      is_default boolean NOT NULL DEFAULT false
    )`);
    await runner.query(`CREATE TABLE shared_volume (
      volume_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      team_id uuid NOT NULL,
      workspace_id uuid NOT NULL,
      region_id bigint NOT NULL,
      region_name text NOT NULL,
      gpuaas_id bigint NOT NULL,
      name text NOT NULL,
      size_gb integer NOT NULL,
      next_size_gb integer,
      used_bytes bigint,
      billed_gb integer NOT NULL DEFAULT 0,
      used_told_at timestamptz(3),
      created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
      ${machineColumns}
    )`);
    await runner.query('CREATE INDEX ON shared_volume (team_id, created_at, volume_id)');
    await runner.query(
      `CREATE UNIQUE INDEX shared_volume_name ON shared_volume (team_id, name) WHERE state <> 'deleted'`,
    );
    await runner.query(
      `CREATE INDEX shared_volume_live_of_cluster ON shared_volume (gpuaas_id, volume_id) WHERE state = 'active'`,
    );
    await runner.query(dueIndex('shared_volume'));
    await addLanes(runner, 'shared_volume');
    await runner.query(`ALTER TABLE pod ADD mounted jsonb NOT NULL DEFAULT '[]'`);
    await runner.query(`UPDATE pod SET mounted = volumes`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pod DROP COLUMN mounted');
    await runner.query('DROP TABLE shared_volume, gpu_service');
  }
}
