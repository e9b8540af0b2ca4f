import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What has ended stays for ever and is rarely asked for: the indexes by which live rows are found hold no others. */
export class LiveRows1800000000000 implements MigrationInterface {
  readonly name = 'LiveRows1800000000000';

  async up(runner: QueryRunner): Promise<void> {
    const liveSubscription = `state NOT IN ('unsubscribed', 'failed')`;
    const liveWorkload = `state NOT IN ('stopped', 'failed')`;
    await runner.query(
      `CREATE INDEX subscription_live_of_team ON subscription (team_id, created_at, subscription_id) WHERE ${liveSubscription}`,
    );
    await runner.query(`CREATE INDEX subscription_live_of_pool ON subscription (pool_id) WHERE ${liveSubscription}`);
    await runner.query(
      `CREATE INDEX workload_live_of_team ON workload (team_id, created_at, workload_id) WHERE ${liveWorkload}`,
    );
    await runner.query(
      `CREATE INDEX workload_live_of_subscription ON workload (subscription_id) WHERE ${liveWorkload}`,
    );
    await runner.query('DROP INDEX subscription_pool_id_idx');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX ON subscription (pool_id)');
    await runner.query(
      'DROP INDEX subscription_live_of_team, subscription_live_of_pool, workload_live_of_team, workload_live_of_subscription',
    );
  }
}
