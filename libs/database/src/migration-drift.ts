import type { DataSource, QueryRunner, ReplicationMode } from 'typeorm';
import { RdbmsSchemaBuilder } from 'typeorm/schema-builder/RdbmsSchemaBuilder.js';

/**
 * The SQL that it would take to make the tables match the entities. Empty when the migrations say what the entities
 * say.
 */
export async function migrationDrift(dataSource: DataSource): Promise<string[]> {
  const { upQueries } = await new RdbmsSchemaBuilder(oneQueryAtATime(dataSource)).log();
  return upQueries.map(({ query }) => query);
}

/** TypeORM asks for the types of all array columns at once, on one connection, which pg 9 will refuse. */
function oneQueryAtATime(dataSource: DataSource): DataSource {
  const createQueryRunner = (mode?: ReplicationMode): QueryRunner => {
    const runner = dataSource.createQueryRunner(mode);
    const query = runner.query.bind(runner);
    let last: Promise<unknown> = Promise.resolve();
    runner.query = (...asked: Parameters<typeof query>) =>
      (last = last.catch(() => undefined).then(() => query(...asked)));
    return runner;
  };
  return Object.create(dataSource, { createQueryRunner: { value: createQueryRunner } }) as DataSource;
}
