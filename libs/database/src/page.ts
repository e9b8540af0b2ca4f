import type { Statements } from './statements.js';

export interface Page<Row> {
  /** Of the whole listing. */
  readonly total: number;
  readonly rows: Row[];
}

export interface PageQuery {
  /** SQL for what is listed: a table and its WHERE. */
  readonly from: string;
  /** SQL for the part of `from` that has all rows up to the end of the page, where less is read for it. */
  readonly pageFrom?: string;
  /** SQL for the order of the listing, by names of columns of `from`. */
  readonly order: string;
  /** SQL for the part of the listing that is the page: LIMIT and OFFSET by their parameters. */
  readonly window: string;
  /** SQL for the columns of a row of the page, `row`; all of `from` unless given. */
  readonly columns?: string;
  /** SQL for joins with `row`, of the rows of the page alone: each has one row for it. */
  readonly joins?: string;
  readonly values: unknown[];
}

interface Placed {
  page_total: number;
  /** null where there is no row on the page. */
  page_place: string | null;
  row_place?: string;
}

/**
 * A page of a listing and its total in one statement and one snapshot. A short listing of whole entities may be read by
 * TypeORM's `findAndCount`, which needs no SQL and takes two statements. Columns come back as pg reads them, an instant
 * as a Date and a bigint as a text, and not as JSON has them. Throws AppError `unavailable` where the database fails.
 */
export async function readPage<Row extends object>(
  statements: Statements,
  { from, pageFrom = from, order, window, columns = 'row.*', joins = '', values }: PageQuery,
): Promise<Page<Row>> {
  const found = await statements.query<Row & Placed>(
    `SELECT page_total, page.* FROM (SELECT count(*)::int FROM ${from}) counted (page_total)
     LEFT JOIN (SELECT ${columns}, row.row_place AS page_place FROM (
       SELECT *, row_number() OVER (ORDER BY ${order}) AS row_place FROM (SELECT * FROM ${pageFrom} ORDER BY ${order} ${window}) chosen
     ) row ${joins}) page ON true ORDER BY page_place`,
    values,
  );
  // Past the end there is one row, with the total alone.
  const onPage = found.filter(({ page_place }) => page_place !== null);
  return { total: found[0]?.page_total ?? 0, rows: onPage.map((row) => withoutPlace(row)) };
}

function withoutPlace<Row>({ page_total: _total, page_place: _pagePlace, row_place: _rowPlace, ...row }: Row & Placed) {
  return row as unknown as Row;
}
