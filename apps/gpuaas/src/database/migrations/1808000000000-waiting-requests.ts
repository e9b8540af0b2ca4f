import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Requests that wait for GPUs that switch or are being prepared, and subscriptions that grow when their nodes have
 * confirmed it.
 */
export class WaitingRequests1808000000000 implements MigrationInterface {
  readonly name = 'WaitingRequests1808000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE waiting_request (
      waiting_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      pool_id bigint NOT NULL REFERENCES pool,
      team_id uuid NOT NULL,
      subscription_id bigint NOT NULL REFERENCES subscription,
      workload_id bigint UNIQUE REFERENCES workload,
      is_added boolean NOT NULL DEFAULT false,
      profile text NOT NULL,
      vgpus integer NOT NULL,
      is_on_one_node boolean NOT NULL DEFAULT false,
      refusal text
    )`);
    await runner.query('CREATE INDEX ON waiting_request (pool_id, waiting_id)');
    await runner.query(
      'CREATE UNIQUE INDEX waiting_request_of_subscription ON waiting_request (subscription_id) WHERE workload_id IS NULL',
    );
    await runner.query('ALTER TABLE lease ADD is_added boolean NOT NULL DEFAULT false');
    await runner.query('ALTER TABLE subscription ADD resize_vgpus integer, ADD resize_failure text');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE subscription DROP COLUMN resize_vgpus, DROP COLUMN resize_failure');
    await runner.query('ALTER TABLE lease DROP COLUMN is_added');
    await runner.query('DROP TABLE waiting_request');
  }
}
