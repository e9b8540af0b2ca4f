import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { clientOptionsOf, schemaOf } from './data-source.js';

const patienceMs = 1_000;

export interface Readiness {
  ready: boolean;
  /** A sentence without names of hosts. */
  reason?: string;
}

/**
 * Whether PostgreSQL answers, for the readiness probe. Asks on a connection of its own, so that a busy pool is not
 * taken for a dead database.
 */
@Injectable()
export class DatabaseStatus implements OnApplicationShutdown {
  private readonly pool: pg.Pool;
  private asking: Promise<Readiness> | undefined;

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

  /** Answers within a second, however many ask. Never throws. A server that only reads is not ready. */
  ready(): Promise<Readiness> {
    this.asking ??= this.ask().finally(() => {
      this.asking = undefined;
    });
    return this.asking;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }

  private async ask(): Promise<Readiness> {
    try {
      const { rows } = await this.pool.query<{ setting: string }>(
        `SELECT current_setting('transaction_read_only') AS setting`,
      );
      return rows[0]?.setting === 'off' ? { ready: true } : { ready: false, reason: 'PostgreSQL is read-only.' };
    } catch {
      return { ready: false, reason: 'PostgreSQL does not answer.' };
    }
  }
}
