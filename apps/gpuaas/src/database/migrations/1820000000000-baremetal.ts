import { addLanes, dueIndex, machineColumns } from '@atoll/state-machine';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Baremetal1820000000000 implements MigrationInterface {
  readonly name = 'Baremetal1820000000000';

  async up(runner: QueryRunner): Promise<void> {
    await createNodes(runner);
    await createInstances(runner);
    await createLedger(runner);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'DROP TABLE simulated_host, baremetal_credential_read, baremetal_attempt, baremetal_instance, baremetal_node',
    );
  }
}

async function createNodes(runner: QueryRunner): Promise<void> {
  await runner.query(`CREATE TABLE baremetal_node (
      node_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text NOT NULL,
      region_id bigint NOT NULL REFERENCES region,
      host text NOT NULL,
      port integer NOT NULL,
      ssh_user text NOT NULL,
      credential text NOT NULL,
      host_key text,
      driver text NOT NULL,
      tenant_sudo boolean NOT NULL,
      home text NOT NULL,
      reinstall_url text,
      gpu_model text NOT NULL,
      gpu_count integer NOT NULL,
      cpu_cores integer NOT NULL,
      memory_gb integer NOT NULL,
      found jsonb,
      differences jsonb NOT NULL DEFAULT '[]',
      accepted jsonb,
      is_maintenance boolean NOT NULL DEFAULT false,
      maintenance_code text,
      maintenance_reason text,
      is_retired boolean NOT NULL DEFAULT false,
      unreachable_since timestamptz(3),
      unreachable_reason text,
      instance_id uuid,
      fence bigint NOT NULL DEFAULT 0,
      failures integer NOT NULL DEFAULT 0,
      reinstall_token text,
      reinstall_asked_at timestamptz(3),
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      ${machineColumns}
    )`);
  await runner.query(
    `CREATE UNIQUE INDEX baremetal_node_host ON baremetal_node (lower(host), port) WHERE state <> 'removed'`,
  );
  await runner.query(`CREATE UNIQUE INDEX baremetal_node_name ON baremetal_node (name) WHERE state <> 'removed'`);
  await runner.query(
    `CREATE INDEX baremetal_node_free ON baremetal_node (lower(gpu_model), gpu_count) WHERE state = 'available' AND NOT is_maintenance AND NOT is_retired`,
  );
  await addMachine(runner, 'baremetal_node');
}

async function createInstances(runner: QueryRunner): Promise<void> {
  await runner.query(`CREATE TABLE baremetal_instance (
      instance_id uuid PRIMARY KEY,
      team_id uuid NOT NULL,
      workspace_id uuid NOT NULL,
      name text NOT NULL,
      region_id bigint,
      gpu_model text,
      gpu_count integer,
      cpu_cores integer,
      memory_gb integer,
      node_id bigint REFERENCES baremetal_node,
      username text NOT NULL,
      password text,
      proof_key text,
      placed_keys text NOT NULL DEFAULT '',
      fence bigint NOT NULL DEFAULT 0,
      waiting_reason text,
      error jsonb,
      active_since timestamptz(3),
      ended_at timestamptz(3),
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      ${machineColumns}
    )`);
  await runner.query('CREATE INDEX ON baremetal_instance (team_id, created_at)');
  await runner.query('CREATE INDEX ON baremetal_instance (node_id)');
  await runner.query(
    `CREATE INDEX baremetal_instance_waiting ON baremetal_instance (instance_id) WHERE state = 'requested'`,
  );
  await addMachine(runner, 'baremetal_instance');
}

async function createLedger(runner: QueryRunner): Promise<void> {
  await runner.query(`CREATE TABLE baremetal_attempt (
      attempt_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      instance_id uuid,
      node_id bigint NOT NULL,
      action text NOT NULL,
      step text NOT NULL,
      started_at timestamptz(3) NOT NULL,
      ended_at timestamptz(3),
      outcome text NOT NULL,
      reason text
    )`);
  await runner.query('CREATE INDEX ON baremetal_attempt (instance_id, attempt_id)');
  await runner.query('CREATE INDEX ON baremetal_attempt (node_id, attempt_id)');
  await runner.query(`CREATE TABLE baremetal_credential_read (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      instance_id uuid NOT NULL,
      actor text NOT NULL,
      request_id text NOT NULL,
      at timestamptz(3) NOT NULL
    )`);
  await runner.query(`CREATE TABLE simulated_host (
      node_id bigint PRIMARY KEY,
      fence bigint NOT NULL DEFAULT 0,
      users jsonb NOT NULL DEFAULT '{}'
    )`);
}

async function addMachine(runner: QueryRunner, table: string): Promise<void> {
  await runner.query(dueIndex(table));
  await addLanes(runner, table);
}
