import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { DataSource } from 'typeorm';
import { errorCodeOf, toAppError } from './database-errors.js';
import { poolOf } from './data-source.js';

/**
 * Prepared statements straight on the pool, for reads outside of transactions that are asked thousands of times a
 * second. Statements inside of transactions are prepared without this (`GuardedClient`).
 */
@Injectable()
export class Statements {
  constructor(private readonly dataSource: DataSource) {}

  protected poolInUse(): pg.Pool {
    return poolOf(this.dataSource);
  }

  /**
   * Runs a statement that PostgreSQL parses and plans once a connection. `name` stands for `text`: never give one name
   * to two texts. Table names need no schema; the service's own comes first. Throws AppError `unavailable` where the
   * database fails.
   */
  async query<Row extends object>(name: string, text: string, values: unknown[]): Promise<Row[]> {
    try {
      return await this.execute<Row>(name, text, values);
    } catch (error) {
      throw toAppError(error);
    }
  }

  private async execute<Row extends object>(name: string, text: string, values: unknown[]): Promise<Row[]> {
    const pool = this.poolInUse();
    const statement: pg.QueryConfig = { name, text, values };
    try {
      return (await pool.query<Row>(statement)).rows;
    } catch (error) {
      // "cached plan must not change result type": a migration changed the table. The pool throws a connection away on
      // which a query failed.
      if (errorCodeOf(error) !== '0A000') throw error;
      return (await pool.query<Row>({ text, values })).rows;
    }
  }
}
