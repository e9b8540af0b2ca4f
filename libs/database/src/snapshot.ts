import type pg from 'pg';
import { nameOf } from './statement-names.js';

/**
 * Prepared statements of one transaction that only reads (REPEATABLE READ): all of them see what had been committed
 * when the first was sent. See `Statements.inSnapshot`.
 */
export class Snapshot {
  private isOver = false;
  /** Has settled once no statement is under way. */
  private last: Promise<unknown> = Promise.resolve();

  private constructor(private readonly client: pg.ClientBase) {}

  /** Runs the work in a snapshot on this connection, which is out of the transaction whatever the work comes to. */
  static async of<T>(client: pg.ClientBase, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
    await client.query('START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const snapshot = new Snapshot(client);
    try {
      const result = await work(snapshot);
      await snapshot.end('COMMIT');
      return result;
    } catch (error) {
      // A connection that is gone has rolled back by itself.
      if (!snapshot.isOver) await snapshot.end('ROLLBACK').catch(() => undefined);
      throw error;
    }
  }

  /**
   * As `Statements.query`, with PostgreSQL’s own errors. One at a time is sent, since the client's patience with a
   * statement begins when it is given one. Throws once the work of the snapshot has ended.
   */
  query<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
    const rows = this.last.then(() => this.send<Row>(text, values));
    this.last = rows.catch(() => undefined);
    return rows;
  }

  private async send<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
    // The connection may be somebody else's by now.
    if (this.isOver) throw new Error('A statement was sent after the end of its snapshot.');
    const { rows } = await this.client.query<Row>({ name: nameOf(text), text, values });
    return rows;
  }

  private async end(statement: 'COMMIT' | 'ROLLBACK'): Promise<void> {
    this.isOver = true;
    await this.last;
    await this.client.query(statement);
  }
}
