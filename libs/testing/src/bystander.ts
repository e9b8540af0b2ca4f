type Query = <Row extends object>(sql: string, values?: unknown[]) => Promise<Row[]>;
type Rows = Readonly<Record<string, readonly object[]>>;

const idOrAddress = /[\da-f]{8}-[\da-f-]{27}(?:@example\.com)?|[\w-]+@example\.com/g;
/** Instants of two accounts may be the same, and short texts are names and states that many have. */
const isAnybodys = /^.{0,7}$|^\d{4}-\d\d-\d\d/;

/** Ids, addresses and texts, at any depth, by which one account is told from another. */
function marksIn(found: unknown): string[] {
  if (typeof found === 'string')
    return [...(found.match(idOrAddress) ?? []), ...(isAnybodys.test(found) ? [] : [found])];
  return typeof found === 'object' && found !== null ? Object.values(found).flatMap(marksIn) : [];
}

/**
 * A team, a user, or several of them, to whom nothing is done: what others do must leave all rows of theirs as they
 * were, and show nothing of them.
 */
export class Bystander {
  private constructor(
    private readonly query: Query,
    private readonly ids: readonly string[],
    /** All rows of theirs by table, as they were at first. */
    readonly before: Rows,
    private readonly marks: ReadonlySet<string>,
  ) {}

  /** `ids`: of the teams and users who stand by. `others`: of those who will act; what both have is nobody’s secret. */
  static async of(query: Query, ids: readonly string[], others: readonly string[]): Promise<Bystander> {
    const before = await rowsOf(query, ids);
    const shared = new Set(marksIn(await rowsOf(query, others)));
    return new Bystander(query, ids, before, new Set(marksIn(before).filter((mark) => !shared.has(mark))));
  }

  /** Whether anything of theirs could be shown. */
  get hasMarks(): boolean {
    return this.marks.size > 0;
  }

  /** Their rows now. */
  rows(): Promise<Rows> {
    return rowsOf(this.query, this.ids);
  }

  /** What of theirs, and of nobody else’s, is in an answer. */
  shownIn(answer: unknown): string[] {
    return marksIn(answer).filter((mark) => this.marks.has(mark));
  }
}

/** Of all tables that say whose a row is. */
async function rowsOf(query: Query, ids: readonly string[]): Promise<Rows> {
  const tables = await query<{ name: string; columns: string[] }>(
    `SELECT table_name::text AS name, array_agg(column_name::text) AS columns FROM information_schema.columns
     WHERE table_schema = current_schema() AND (column_name IN ('user_id', 'team_id') OR (table_name, column_name) IN (('user', 'id'), ('team', 'id')))
     GROUP BY 1 ORDER BY 1`,
  );
  const rows: Record<string, object[]> = {};
  for (const { name, columns } of tables) {
    const isTheirs = columns.map((column) => `${column}::text = ANY ($1)`).join(' OR ');
    const sql = `SELECT to_jsonb(found) AS row FROM "${name}" AS found WHERE ${isTheirs} ORDER BY found::text`;
    rows[name] = (await query<{ row: object }>(sql, [ids])).map(({ row }) => row);
  }
  return rows;
}
