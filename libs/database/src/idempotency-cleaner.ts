import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { tableOf } from './data-source.js';
import { IdempotencyKey } from './idempotency-key.entity.js';

const everyMs = 10 * 60_000;
const batchSize = 1_000;
const maxBatches = 100;

/** Removes the replies whose 24 h are over, a little at a time. Replicas do not wait for each other. */
@Injectable()
export class IdempotencyCleaner implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('Database');
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly dataSource: DataSource) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      this.clean().catch((error: Error) => this.logger.warn(`Expired idempotency keys stay until the next try: ${error.message}`));
    }, everyMs).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  /** Gives back how many were removed. */
  async clean(): Promise<number> {
    const table = tableOf(this.dataSource, IdempotencyKey);
    let removed = 0;
    for (let batch = 0; batch < maxBatches; batch += 1) {
      const [, count] = await this.dataSource.query<[unknown, number]>(
        `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE expires_at <= now() LIMIT ${batchSize} FOR UPDATE SKIP LOCKED)`,
      );
      removed += count;
      if (count < batchSize) break;
    }
    return removed;
  }
}
