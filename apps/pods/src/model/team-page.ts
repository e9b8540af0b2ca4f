import { pageWindow, type IncludeEnded, type PageFromOne, type Pagination } from '@atoll/contracts';
import { readPage, type Statements } from '@atoll/database';

/** SQL: a table of things of teams, its key, and the column by which a caller narrows the listing. */
interface Listing {
  readonly table: string;
  readonly key: string;
  readonly column: string;
  /** SQL: the columns that are read; all unless given. */
  readonly columns?: string;
}

type Asked = PageFromOne & IncludeEnded & { readonly team_id: string };

/** What a team has, the oldest first; `only` narrows it to one value of the column. What is deleted has ended. */
export async function readTeamPage(
  statements: Statements,
  { table, key, column, columns }: Listing,
  asked: Asked,
  only: string | undefined,
): Promise<{ rows: object[]; pagination: Pagination }> {
  const { page, limit, offset } = pageWindow(asked, 1);
  const isWhole = asked.include_ended === 'true';
  const where = `team_id = $1 AND ($2::bigint IS NULL OR ${column} = $2)${isWhole ? '' : ` AND state <> 'deleted'`}`;
  const { total, rows } = await readPage(statements, {
    from: `${table} WHERE ${where}`,
    order: `created_at, ${key}`,
    window: 'LIMIT $3 OFFSET $4',
    ...(columns !== undefined && { columns }),
    values: [asked.team_id, only ?? null, limit, offset],
  });
  return { rows, pagination: { page, limit, total } };
}
