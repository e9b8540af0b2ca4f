import type { DataSource, QueryRunner } from 'typeorm';

interface Rights {
  missing: string[];
  may_create: boolean;
  database: string;
  role: string;
}

/**
 * Returns those of the schemas that the database does not have yet. Throws an Error that says what to do where its user
 * may not create them.
 */
export async function missingSchemas(
  connection: DataSource | QueryRunner,
  schemas: readonly string[],
): Promise<string[]> {
  const [rights] = (await connection.query(
    `SELECT ARRAY(SELECT name FROM unnest($1::text[]) AS name WHERE name NOT IN (SELECT nspname FROM pg_namespace)) AS missing,
       has_database_privilege(current_database(), 'CREATE') AS may_create,
       quote_ident(current_database()) AS database, quote_ident(current_user) AS role`,
    [schemas],
  )) as Rights[];
  const { missing = [], may_create: mayCreate, database, role } = rights ?? {};
  if (missing.length === 0 || mayCreate) return missing;
  throw new Error(
    `The user of DATABASE_URL may not create schemas in ${database}: GRANT CREATE ON DATABASE ${database} TO ${role}`,
  );
}

/** CREATE SCHEMA IF NOT EXISTS wants the right to create even where nothing is to be done. */
export async function createSchema(runner: QueryRunner, schema: string): Promise<void> {
  const missing = await missingSchemas(runner, [schema]);
  if (missing.length > 0) await runner.query(`CREATE SCHEMA "${schema}"`);
}
