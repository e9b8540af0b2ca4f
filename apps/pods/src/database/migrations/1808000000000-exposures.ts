import { addLanes, dueIndex, machineColumns } from '@atoll/state-machine';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Exposures1808000000000 implements MigrationInterface {
  readonly name = 'Exposures1808000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE exposure (
      service_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      pod_id uuid NOT NULL REFERENCES pod,
      gpuaas_id bigint NOT NULL,
      public_host text NOT NULL,
      service_name text NOT NULL,
      port integer NOT NULL,
      protocol text NOT NULL,
      external_port integer NOT NULL,
      is_ssl boolean NOT NULL,
      is_picked boolean NOT NULL,
      run integer NOT NULL DEFAULT 1,
      next jsonb,
      problem jsonb,
      created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
      ${machineColumns}
    )`);
    await runner.query('CREATE INDEX ON exposure (pod_id)');
    await runner.query(`CREATE UNIQUE INDEX exposure_name ON exposure (pod_id, service_name) WHERE state <> 'deleted'`);
    await runner.query(dueIndex('exposure'));
    await addLanes(runner, 'exposure');
    await runner.query(`CREATE TABLE reserved_port (
      public_host text,
      external_port integer,
      service_id bigint REFERENCES exposure,
      until timestamptz(3),
      PRIMARY KEY (public_host, external_port)
    )`);
    await runner.query('CREATE INDEX ON reserved_port (service_id)');
    await runner.query(`CREATE TABLE certificate (
      public_host text PRIMARY KEY,
      certificate text NOT NULL,
      sealed_key text NOT NULL,
      expires_at timestamptz(3) NOT NULL
    )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE certificate, reserved_port, exposure');
  }
}
