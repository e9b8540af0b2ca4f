import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { CallNonce } from './call-nonce.entity.js';
import { tableOf } from './data-source.js';
import { IdempotencyKey } from './idempotency-key.entity.js';
import { Removals } from './removals.js';

/** Removes rows whose time is over. Replicas do not wait for each other. */
abstract class ExpiredRows extends Removals {
  private readonly removal: string;

  protected constructor(
    private readonly dataSource: DataSource,
    entity: new () => { expiresAt: Date },
    private readonly batchSize: number,
    everyMs?: number,
  ) {
    const table = tableOf(dataSource, entity);
    super(`expired rows of ${table}`, false, everyMs);
    this.removal = `DELETE FROM ${table} WHERE ctid IN (SELECT ctid FROM ${table} WHERE expires_at <= now() LIMIT ${batchSize} FOR UPDATE SKIP LOCKED)`;
  }

  override async removeSome(): Promise<boolean> {
    const [, removed] = await this.dataSource.query<[unknown, number]>(this.removal);
    return removed === this.batchSize;
  }
}

/** Kept replies live for a day. */
@Injectable()
export class ExpiredReplies extends ExpiredRows {
  constructor(dataSource: DataSource) {
    super(dataSource, IdempotencyKey, 1_000);
  }
}

/** Nonces live for seconds, and there is one for each call that changes something. */
@Injectable()
export class ExpiredNonces extends ExpiredRows {
  constructor(dataSource: DataSource) {
    super(dataSource, CallNonce, 10_000, 30_000);
  }
}
