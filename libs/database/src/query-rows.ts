import type { DataSource } from 'typeorm';

/**
 * A door to the database for a library that brings its own tables and knows no TypeORM: any text, and the rows of
 * whatever command it is.
 */
export function rowsOf(dataSource: DataSource): {
  query<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>;
} {
  return {
    async query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
      const result = await dataSource.query<Row[] | [Row[], number] | undefined>(
        sql,
        values.length > 0 ? values : undefined,
      );
      // Several statements in one text give nothing.
      if (!result) return [];
      // TypeORM gives rows and their number for UPDATE and DELETE, and rows alone for everything else.
      return result.length === 2 && typeof result[1] === 'number' ? (result[0] as Row[]) : (result as Row[]);
    },
  };
}
