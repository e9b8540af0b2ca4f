import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { CallNonce } from './call-nonce.entity.js';
import { tableOf } from './data-source.js';
import { IdempotencyKey } from './idempotency-key.entity.js';

interface Sweep {
  entity: new () => { expiresAt: Date };
  everyMs: number;
  batchSize: number;
}

/** Replies live for a day; nonces for seconds, and there is one for each call that changes something. */
const sweeps: readonly Sweep[] = [
  { entity: IdempotencyKey, everyMs: 10 * 60_000, batchSize: 1_000 },
  { entity: CallNonce, everyMs: 30_000, batchSize: 10_000 },
];
const maxBatches = 100;

/** Removes kept replies and nonces whose time is over, a little at a time. Replicas do not wait for each other. */
@Injectable()
export class ExpiredRows implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('Database');
  private timers: NodeJS.Timeout[] = [];

  constructor(private readonly dataSource: DataSource) {}

  onApplicationBootstrap(): void {
    this.timers = sweeps.map((sweep) => setInterval(() => void this.tryToClean(sweep), sweep.everyMs).unref());
  }

  onModuleDestroy(): void {
    this.timers.forEach(clearInterval);
  }

  /** Gives back how many were removed. */
  async clean(): Promise<number> {
    let removed = 0;
    for (const sweep of sweeps) removed += await this.cleanOne(sweep);
    return removed;
  }

  private async tryToClean(sweep: Sweep): Promise<void> {
    await this.cleanOne(sweep).catch((error: Error) =>
      this.logger.warn(
        `Expired rows of ${tableOf(this.dataSource, sweep.entity)} stay until the next try: ${error.message}`,
      ),
    );
  }

  private async cleanOne({ entity, batchSize }: Sweep): Promise<number> {
    const table = tableOf(this.dataSource, entity);
    let removed = 0;
    for (let batch = 0; batch < maxBatches; batch += 1) {
      const [, count] = await this.dataSource.query<[unknown, number]>(
        `DELETE FROM ${table} WHERE ctid IN (SELECT ctid FROM ${table} WHERE expires_at <= now() LIMIT ${batchSize} FOR UPDATE SKIP LOCKED)`,
      );
      removed += count;
      if (count < batchSize) break;
    }
    return removed;
  }
}
