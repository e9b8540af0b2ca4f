import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { DataSource } from 'typeorm';
import { poolOf } from './data-source.js';
import { isOutdated, toAppError } from './database-errors.js';
import { Snapshot } from './snapshot.js';
import { nameOf } from './statement-names.js';

/**
 * Prepared statements outside of transactions: what is asked thousands of times a second, and what the steps of
 * machines ask. Statements inside of transactions are prepared without this (`GuardedClient`).
 */
@Injectable()
export class Statements {
  constructor(private readonly dataSource: DataSource) {}

  protected poolInUse(): pg.Pool {
    return poolOf(this.dataSource);
  }

  /**
   * Runs a statement that PostgreSQL parses and plans once a connection: there must not be texts without end. Table
   * names need no schema; the service's own comes first. Throws AppError `unavailable` where the database fails.
   */
  async query<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
    return this.onConnection(async (client) => {
      const { rows } = await client.query<Row>({ name: nameOf(text), text, values });
      return rows;
    });
  }

  /**
   * Runs work whose statements see one state of the database, on one connection, which it holds until it ends: what
   * takes long and reads nothing belongs behind it. After a migration has changed what a statement returns, all of the
   * work runs again, so it must do nothing but read. Throws what the work throws, and AppError `unavailable` where the
   * database fails.
   */
  async inSnapshot<T>(work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
    return this.onConnection((client) => Snapshot.of(client, work));
  }

  /** The connection goes back to its pool, whatever the use comes to; the pool drops one that is lost. */
  private async onConnection<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    try {
      const client = await this.poolInUse().connect();
      try {
        return await use(client).catch((error: unknown) => {
          // It was refused before it did anything, and all statements have other names now.
          if (isOutdated(error)) return use(client);
          throw error;
        });
      } finally {
        client.release();
      }
    } catch (error) {
      throw toAppError(error);
    }
  }
}
