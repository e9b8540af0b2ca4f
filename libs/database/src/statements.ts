import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { DataSource } from 'typeorm';
import { poolOf } from './data-source.js';
import { isOutdated, toAppError } from './database-errors.js';
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
    try {
      return await this.execute<Row>(text, values);
    } catch (error) {
      throw toAppError(error);
    }
  }

  /** The connection goes back to its pool, whatever the statement comes to; the pool drops one that is lost. */
  private async execute<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
    const client = await this.poolInUse().connect();
    const send = () => client.query<Row>({ name: nameOf(text), text, values });
    try {
      const { rows } = await send().catch((error: unknown) => {
        // It was refused before it did anything, and all statements have other names now.
        if (isOutdated(error)) return send();
        throw error;
      });
      return rows;
    } finally {
      client.release();
    }
  }
}
