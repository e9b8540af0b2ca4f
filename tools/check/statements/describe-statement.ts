import pg from 'pg';

/** A column of what a statement returns. */
export interface Column {
  name: string;
  /** The object id of its type in PostgreSQL. */
  type: number;
  /** Whether it may be null; undefined if that is not known, as of an expression. */
  isNullable?: boolean | undefined;
}

type Description = { columns: Column[] } | { fault: string };

interface Field {
  name: string;
  dataTypeID: number;
  /** Of a column of a table that is returned as it is; else 0. */
  tableID: number;
  columnID: number;
}

/** What of pg's own connection this needs: it is the protocol, and has no types. */
interface Protocol {
  parse(query: { text: string; name: string }): void;
  describe(message: { type: 'S'; name: string }): void;
  sync(): void;
}

/** In place of a query: parses and describes, and runs nothing. pg calls these methods. */
class Preparation implements pg.Submittable {
  private fields: readonly Field[] = [];
  private fault: string | undefined;

  constructor(
    private readonly sql: string,
    private readonly done: (description: { fields: readonly Field[] } | { fault: string }) => void,
  ) {}

  submit(connection: pg.Connection): void {
    const protocol = connection as unknown as Protocol;
    protocol.parse({ text: this.sql, name: '' });
    protocol.describe({ type: 'S', name: '' });
    protocol.sync();
  }

  handleRowDescription({ fields }: { fields: readonly Field[] }): void {
    this.fields = fields;
  }

  handleError({ message }: Error): void {
    this.fault = message;
    this.handleReadyForQuery();
  }

  handleReadyForQuery(): void {
    this.done(this.fault === undefined ? { fields: this.fields } : { fault: this.fault });
  }
}

interface TableColumn {
  name: string;
  is_not_null: boolean;
}

/** The columns of the tables of a schema, by the numbers that PostgreSQL describes them with. */
const tableColumnsSql = `
  SELECT attrelid || '.' || attnum AS id, attname AS name, attnotnull AS is_not_null
  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p') AND attnum > 0`;

/**
 * Whether a statement may return null as a column of a table. Undefined where the text may decide otherwise than the
 * table: where it has an outer join, or compares a column of that name, which leaves nulls out.
 */
export function mayReturnNull({ name, is_not_null }: TableColumn, text: string): boolean | undefined {
  if (is_not_null) return /\b(?:LEFT|RIGHT|FULL)\b/i.test(text) ? undefined : false;
  const comparison = `\\b${name}(?:, [\\w.]+)*\\)? (?:=|<|>|IN\\b|IS NOT NULL)`;
  const leavesNullsOut = new RegExp(`${comparison}|USING \\([\\w, ]*\\b${name}\\b`, 'i');
  return leavesNullsOut.test(text.replaceAll(/\s+/g, ' ')) ? undefined : true;
}

/** A session that prepares statements and runs none. */
export class Preparer {
  private constructor(
    private readonly client: pg.Client,
    private readonly tableColumns: ReadonlyMap<string, TableColumn>,
  ) {}

  /** `schema` is where tables are looked for. */
  static async connect(url: string, schema: string): Promise<Preparer> {
    const client = new pg.Client({ connectionString: url, options: `-c search_path=${schema}` });
    await client.connect();
    const { rows } = await client.query<TableColumn & { id: string }>(tableColumnsSql, [schema]);
    return new Preparer(client, new Map(rows.map(({ id, ...column }) => [id, column])));
  }

  /**
   * Lets PostgreSQL parse a statement and check its names and types. What it would return, or why it cannot be
   * prepared.
   */
  describe(text: string): Promise<Description> {
    return new Promise((resolve) => {
      const done = (found: { fields: readonly Field[] } | { fault: string }) =>
        resolve('fault' in found ? found : { columns: found.fields.map((field) => this.columnOf(field, text)) });
      this.client.query(new Preparation(text, done));
    });
  }

  private columnOf({ name, dataTypeID, tableID, columnID }: Field, text: string): Column {
    const column = this.tableColumns.get(`${tableID}.${columnID}`);
    return { name, type: dataTypeID, isNullable: column && mayReturnNull(column, text) };
  }

  async close(): Promise<void> {
    await this.client.end();
  }
}
