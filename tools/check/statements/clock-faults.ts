/** By column: the tables that have an index on it. */
export type IndexedColumns = ReadonlyMap<string, readonly string[]>;

/** For `pg.Client.query` and its like. $1: the schema. */
export const indexedColumnsSql = `SELECT attname AS name, array_agg(DISTINCT relname::text) AS tables FROM pg_index
  JOIN pg_class ON pg_class.oid = indrelid JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
  WHERE relnamespace = $1::regnamespace GROUP BY attname`;

const compared = /\b(?:\w+\.)?(\w+)\s*[<>]=?\s*clock_timestamp\(\)/g;

/**
 * Where a statement compares an indexed column with `clock_timestamp()`: the function is volatile, so that PostgreSQL
 * calls it for each row, and reads the whole index or table. A subquery is evaluated once.
 */
export function clockFaults(text: string, indexed: IndexedColumns): string[] {
  const words = new Set(text.match(/\w+/g));
  return [...text.matchAll(compared)].flatMap(([found, name = '']) =>
    indexed.get(name)?.some((table) => words.has(table))
      ? [`\`${found}\` reads all rows, though ${name} has an index: write (SELECT clock_timestamp())`]
      : [],
  );
}
