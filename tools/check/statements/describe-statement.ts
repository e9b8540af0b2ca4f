import pg from 'pg';

/** A column of what a statement returns. */
export interface Column {
  name: string;
  /** The object id of its type in PostgreSQL. */
  type: number;
}

type Description = { columns: Column[] } | { fault: string };

/** What of pg's own connection this needs: it is the protocol, and has no types. */
interface Protocol {
  parse(query: { text: string; name: string }): void;
  describe(message: { type: 'S'; name: string }): void;
  sync(): void;
}

/** In place of a query: parses and describes, and runs nothing. pg calls these methods. */
class Preparation implements pg.Submittable {
  private columns: Column[] = [];
  private fault: string | undefined;

  constructor(
    private readonly sql: string,
    private readonly done: (description: Description) => void,
  ) {}

  submit(connection: pg.Connection): void {
    const protocol = connection as unknown as Protocol;
    protocol.parse({ text: this.sql, name: '' });
    protocol.describe({ type: 'S', name: '' });
    protocol.sync();
  }

  handleRowDescription({ fields }: { fields: { name: string; dataTypeID: number }[] }): void {
    this.columns = fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
  }

  handleError({ message }: Error): void {
    this.fault = message;
    this.handleReadyForQuery();
  }

  handleReadyForQuery(): void {
    this.done(this.fault === undefined ? { columns: this.columns } : { fault: this.fault });
  }
}

/** A session that prepares statements and runs none. */
export class Preparer {
  private constructor(private readonly client: pg.Client) {}

  /** `schema` is where tables are looked for. */
  static async connect(url: string, schema: string): Promise<Preparer> {
    const client = new pg.Client({ connectionString: url, options: `-c search_path=${schema}` });
    await client.connect();
    return new Preparer(client);
  }

  /**
   * Lets PostgreSQL parse a statement and check its names and types. What it would return, or why it cannot be
   * prepared.
   */
  describe(text: string): Promise<Description> {
    return new Promise((resolve) => {
      this.client.query(new Preparation(text, resolve));
    });
  }

  async close(): Promise<void> {
    await this.client.end();
  }
}
