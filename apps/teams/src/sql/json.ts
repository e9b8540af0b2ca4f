export interface PageRow<T> {
  total: number;
  data: T[];
}

/**
 * One statement for a page of a listing, in order of creation, and its total. `$1` is the limit and `$2` the offset;
 * `where` may use further parameters. `json` describes one row, by the name `row`, and is worked out for the rows of
 * the page alone.
 */
export function pageQuery({
  table,
  where,
  json,
  joins = '',
}: {
  table: string;
  where: string;
  json: string;
  joins?: string;
}): string {
  return `SELECT
    (SELECT count(*)::int FROM ${table} WHERE ${where}) AS total,
    (SELECT COALESCE(json_agg(${json} ORDER BY row.created_at, row.id), '[]')
      FROM (SELECT * FROM ${table} WHERE ${where} ORDER BY created_at, id LIMIT $1 OFFSET $2) row ${joins}) AS data`;
}
