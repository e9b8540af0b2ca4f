import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Writers that meet on one row wait for each other; a process has ten connections. */
const shards = 16;

/**
 * How many teams there are, kept by triggers, so that no statement that adds or deletes a team can forget it, in a
 * replica of the release before this one neither. Each session has one of 16 rows, so writers do not wait for one row.
 */
export class TeamCount1804000000000 implements MigrationInterface {
  readonly name = 'TeamCount1804000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('LOCK TABLE team IN SHARE ROW EXCLUSIVE MODE');
    await runner.query(
      'CREATE TABLE team_count (shard smallint PRIMARY KEY, live integer NOT NULL) WITH (fillfactor = 50)',
    );
    await runner.query(
      `INSERT INTO team_count SELECT shard, CASE shard WHEN 0 THEN (SELECT count(*) FROM team WHERE deleted_at IS NULL) ELSE 0 END
       FROM generate_series(0, ${shards - 1}) shard`,
    );
    await runner.query(
      `CREATE FUNCTION teams.count_team() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         UPDATE teams.team_count SET live = live + TG_ARGV[0]::integer WHERE shard = pg_backend_pid() % ${shards};
         RETURN NULL;
       END $$`,
    );
    const trigger = (name: string, event: string, condition: string, change: number) =>
      runner.query(
        `CREATE TRIGGER ${name} AFTER ${event} ON team FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION teams.count_team('${change}')`,
      );
    await trigger('team_added', 'INSERT', 'NEW.deleted_at IS NULL', 1);
    await trigger('team_deleted', 'UPDATE', 'OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL', -1);
    await trigger('team_restored', 'UPDATE', 'OLD.deleted_at IS NOT NULL AND NEW.deleted_at IS NULL', 1);
    await trigger('team_removed', 'DELETE', 'OLD.deleted_at IS NULL', -1);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of ['team_added', 'team_deleted', 'team_restored', 'team_removed'])
      await runner.query(`DROP TRIGGER ${name} ON team`);
    await runner.query('DROP FUNCTION teams.count_team()');
    await runner.query('DROP TABLE team_count');
  }
}
