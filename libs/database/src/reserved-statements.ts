import type { OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import type { DataSource } from 'typeorm';
import { clientOptionsOf, schemaOf } from './data-source.js';
import { Statements } from './statements.js';

interface Reservation {
  /** Part of the connections' application name, `atoll-<schema>-<purpose>`. */
  purpose: string;
  /** Connections that this process holds at most, beside those of the service's pool. */
  poolSize: number;
}

/**
 * `Statements` on connections of their own, for reads that must not wait behind whatever has taken the service's pool.
 */
export class ReservedStatements extends Statements implements OnApplicationShutdown {
  private readonly pool: pg.Pool;

  constructor(dataSource: DataSource, { purpose, poolSize }: Reservation) {
    super(dataSource);
    this.pool = new pg.Pool({
      ...clientOptionsOf(dataSource),
      application_name: `atoll-${schemaOf(dataSource)}-${purpose}`,
      max: poolSize,
      allowExitOnIdle: true,
    });
    // The next statement gets a new connection, or throws.
    this.pool.on('error', () => undefined);
  }

  protected override poolInUse(): pg.Pool {
    return this.pool;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
