import type { Statements } from './statements.js';

export interface Page<Row> {
  /** Of the whole listing. */
  readonly total: number;
  readonly rows: Row[];
}

export interface PageQuery {
  /** SQL for the number of all rows, one column of type integer. */
  readonly count: string;
  /** SQL for the rows of the page, with its LIMIT and OFFSET. */
  readonly rows: string;
  /** The order of `rows`, by names of its columns. */
  readonly order: string;
  readonly values: unknown[];
}

/**
 * A page of a listing and its total in one statement and one snapshot. Columns come back as pg reads them, an instant
 * as a Date and a bigint as a text, and not as JSON has them. Throws AppError `unavailable` where the database fails.
 */
export async function readPage<Row extends object>(
  statements: Statements,
  { count, rows, order, values }: PageQuery,
): Promise<Page<Row>> {
  const found = await statements.query<Row & { page_total: number; is_on_page: true | null }>(
    `SELECT page_total, page.* FROM (${count}) counted (page_total)
     LEFT JOIN (SELECT listed.*, true AS is_on_page FROM (${rows}) listed) page ON true ORDER BY ${order}`,
    values,
  );
  // Past the end there is one row, with the total alone.
  return { total: found[0]?.page_total ?? 0, rows: found.filter(({ is_on_page }) => is_on_page) };
}
