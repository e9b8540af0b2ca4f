import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { errorCodeOf, toAppError } from './database-errors.js';
import { poolOf } from './data-source.js';

/** Prepared statements straight on the pool, for the few reads that are asked thousands of times a second. */
@Injectable()
export class Statements {
  constructor(private readonly dataSource: DataSource) {}

  protected poolInUse(): pg.Pool {
    return poolOf(this.dataSource);
  }

  /**
   * Runs a statement that PostgreSQL parses and plans once a connection. `name` stands for `text`: never give one name to two texts.
   * Table names need no schema; the service's own comes first. Throws AppError `unavailable` where the database fails.
   */
  async query<Row extends object>(name: string, text: string, values: unknown[]): Promise<Row[]> {
    try {
      return await this.execute<Row>(name, text, values);
    } catch (error) {
      throw toAppError(error);
    }
  }

  /**
   * As `query`, by the connection of a transaction. Throws what the driver throws, so that `Transactions` decides what becomes of it. The types
   * of the columns that it returns must be spelt out: a prepared statement does not outlive a change of them.
   */
  async queryIn<Row extends object>(manager: EntityManager, name: string, text: string, values: unknown[]): Promise<Row[]> {
    const client = (await manager.queryRunner?.connect()) as pg.Client | undefined;
    if (!client) throw new Error('There is no transaction to run this statement in.');
    return (await client.query<Row>({ name, text, values })).rows;
  }

  private async execute<Row extends object>(name: string, text: string, values: unknown[]): Promise<Row[]> {
    const pool = this.poolInUse();
    const statement: pg.QueryConfig = { name, text, values };
    try {
      return (await pool.query<Row>(statement)).rows;
    } catch (error) {
      // "cached plan must not change result type": a migration changed the table. The pool throws a connection away on which a query failed.
      if (errorCodeOf(error) !== '0A000') throw error;
      return (await pool.query<Row>({ text, values })).rows;
    }
  }
}
