import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { clientOptionsOf, schemaOf } from './data-source.js';

const patienceMs = 1_000;

/**
 * Whether PostgreSQL answers, for the readiness probe. Asks on a connection of its own, so that a busy pool is not
 * taken for a dead database.
 */
@Injectable()
export class DatabaseStatus implements OnApplicationShutdown {
  private readonly pool: pg.Pool;
  private asking: Promise<string | null> | undefined;

  constructor(dataSource: DataSource) {
    this.pool = new pg.Pool({
      ...clientOptionsOf(dataSource),
      connectionTimeoutMillis: patienceMs,
      statement_timeout: patienceMs,
      query_timeout: patienceMs,
      application_name: `atoll-${schemaOf(dataSource)}-status`,
      max: 1,
      allowExitOnIdle: true,
    });
    // The next question tells.
    this.pool.on('error', () => undefined);
  }

  /**
   * Why it cannot be used, in a sentence without names of hosts; null where it can. A server that only reads cannot.
   * Answers within a second, however many ask. Never throws.
   */
  fault(): Promise<string | null> {
    this.asking ??= this.ask().finally(() => {
      this.asking = undefined;
    });
    return this.asking;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }

  private async ask(): Promise<string | null> {
    try {
      const client = await this.pool.connect();
      let isWritable = false;
      try {
        const { rows } = await client.query<{ setting: string }>(
          `SELECT current_setting('transaction_read_only') AS setting`,
        );
        isWritable = rows[0]?.setting === 'off';
      } finally {
        // A session of a former primary, or one that began while changes were forbidden, may stay read-only for ever.
        client.release(!isWritable);
      }
      return isWritable ? null : 'PostgreSQL is read-only.';
    } catch {
      return 'PostgreSQL does not answer.';
    }
  }
}
