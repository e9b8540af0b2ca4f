import { pageWindow, type IncludeEnded, type PageFromOne, type Pagination } from '@atoll/contracts';
import { readPage, type Statements } from '@atoll/database';

/** SQL: a table of things of teams, its key, and the column by which a caller narrows the listing. */
interface Listing {
  readonly table: string;
  readonly key: string;
  readonly column: string;
  /** SQL: the columns of `row` that are read. */
  readonly columns: string;
}

type Asked = PageFromOne & IncludeEnded & { readonly team_id: string };

/**
 * What a team has, the oldest first; `only` narrows it to one value of the column. What is deleted has ended. The page
 * is found by keys: where an index has all that is asked for, as of pods and with what has ended, no rows are read for
 * what comes before it.
 */
export async function readTeamPage(
  statements: Statements,
  { table, key, column, columns }: Listing,
  asked: Asked,
  only: string | undefined,
): Promise<{ rows: object[]; pagination: Pagination }> {
  const { page, limit, offset } = pageWindow(asked, 1);
  const kept = asked.include_ended === 'true' ? '' : ` AND state <> 'deleted'`;
  const ofColumn = only === undefined ? '' : ` AND ${column} = $4::bigint`;
  const order = `created_at, ${key}`;
  const { total, rows } = await readPage<{ key: string }>(statements, {
    from: `(SELECT ${order} FROM ${table} WHERE team_id = $1${kept}${ofColumn}) AS found`,
    order,
    window: 'LIMIT $2 OFFSET $3',
    columns: `row.${key} AS key`,
    values: [asked.team_id, limit, offset, ...(only === undefined ? [] : [only])],
  });
  const keys = rows.map((row) => row.key);
  if (keys.length === 0) return { rows: [], pagination: { page, limit, total } };
  const whole = await statements.query<object>(
    `SELECT ${columns} FROM ${table} row WHERE ${key} = ANY ($1) ORDER BY created_at, ${key}`,
    [keys],
  );
  return { rows: whole, pagination: { page, limit, total } };
}
