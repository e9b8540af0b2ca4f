import type { DataSource } from 'typeorm';

/** The SQL that it would take to make the tables match the entities. Empty when the migrations say what the entities say. */
export async function migrationDrift(dataSource: DataSource): Promise<string[]> {
  const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
  return upQueries.map(({ query }) => query);
}
