import { addLanes, dueIndex, machineColumns } from '@atoll/state-machine';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Vms1830000002000 implements MigrationInterface {
  readonly name = 'Vms1830000002000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE flavour (
      name text PRIMARY KEY,
      vcpus integer NOT NULL,
      memory_gb numeric(9,2) NOT NULL,
      created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
    )`);
    await runner.query(`CREATE TABLE vm (
      instance_id uuid PRIMARY KEY,
      name text NOT NULL,
      team_id uuid NOT NULL,
      workspace_id uuid NOT NULL,
      region_id bigint NOT NULL,
      region_name text NOT NULL,
      gpuaas_id bigint NOT NULL,
      flavour text NOT NULL,
      vcpus integer NOT NULL,
      memory_gb numeric(9,2) NOT NULL,
      image text NOT NULL,
      reference text NOT NULL,
      volumes jsonb NOT NULL,
      auto_restart boolean NOT NULL,
      run integer NOT NULL DEFAULT 1,
      restarts integer NOT NULL DEFAULT 0,
      failures integer NOT NULL DEFAULT 0,
      next_run_at timestamptz(3),
      end_reason text,
      started_at timestamptz(3),
      is_billed boolean NOT NULL DEFAULT false,
      told integer NOT NULL DEFAULT 0,
      created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
      ${machineColumns}
    )`);
    await runner.query('CREATE INDEX ON vm (team_id, created_at, instance_id)');
    await runner.query(`CREATE UNIQUE INDEX vm_name ON vm (team_id, name) WHERE state <> 'deleted'`);
    await runner.query(`CREATE INDEX vm_running_of_cluster ON vm (gpuaas_id, instance_id) WHERE state = 'running'`);
    await runner.query(dueIndex('vm'));
    await addLanes(runner, 'vm');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE vm, flavour');
  }
}
