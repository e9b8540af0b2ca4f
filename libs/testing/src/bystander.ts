type Query = <Row extends object>(sql: string, values?: unknown[]) => Promise<Row[]>;
type Rows = Readonly<Record<string, readonly string[]>>;

/** Ids and addresses: what no two accounts have in common. */
const marksIn = (all: unknown): string[] =>
  JSON.stringify(all ?? '').match(/[\da-f]{8}-[\da-f-]{27}(?:@example\.com)?|[\w-]+@example\.com/g) ?? [];

/**
 * A team, a user, or several of them, to whom nothing is done: what others do must leave all rows of theirs as they
 * were, and show nothing of them.
 */
export class Bystander {
  private constructor(
    private readonly query: Query,
    private readonly ids: readonly string[],
    /** All rows of theirs by table, as text, as they were at first. */
    readonly before: Rows,
    private readonly marks: ReadonlySet<string>,
  ) {}

  /** `ids`: of the teams and users who stand by. `others`: of those who will act; what both have is nobody’s secret. */
  static async of(query: Query, ids: readonly string[], others: readonly string[]): Promise<Bystander> {
    const before = await rowsOf(query, ids);
    const shared = new Set(marksIn(await rowsOf(query, others)));
    return new Bystander(query, ids, before, new Set(marksIn(before).filter((mark) => !shared.has(mark))));
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
  const rows: Record<string, string[]> = {};
  for (const { name, columns } of tables) {
    const isTheirs = columns.map((column) => `${column}::text = ANY ($1)`).join(' OR ');
    const sql = `SELECT to_jsonb(found)::text AS text FROM "${name}" AS found WHERE ${isTheirs} ORDER BY 1`;
    rows[name] = (await query<{ text: string }>(sql, [ids])).map(({ text }) => text);
  }
  return rows;
}
