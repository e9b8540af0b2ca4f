import { createHmac } from 'node:crypto';
import { derivedKey } from '@atoll/api-keys';
import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';

/** No row is as far ahead of the clock, unless the clock was set back. Longer than a statement waits for a row. */
const impossible = `(SELECT clock_timestamp()) + $3 * interval '1 ms' + interval '1 minute'`;

/**
 * GCRA: takes one token from the bucket `$1`, which refills one in `$2` ms and has room for `$3` ms. No row if none is
 * left. A bucket of a time before the clock was set back is full: it would be empty until that time comes again.
 */
const takeQuery = `
  INSERT INTO log_in_bucket AS b (id, full_at) VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
  ON CONFLICT (id) DO UPDATE SET full_at = $2 * interval '1 ms' +
    CASE WHEN b.full_at > ${impossible} THEN clock_timestamp() ELSE greatest(b.full_at, clock_timestamp()) END
  WHERE b.full_at <= (SELECT clock_timestamp()) + ($3 - $2) * interval '1 ms' OR b.full_at > ${impossible} RETURNING full_at`;

const giveBackQuery = `UPDATE log_in_bucket SET full_at = full_at - $2 * interval '1 ms' WHERE id = $1`;

/** A bucket holds as many tokens as refill in `capacityMs`. */
export interface BucketRate {
  /** Until one more token is there. */
  readonly refillMs: number;
  readonly capacityMs: number;
}

/** Whose bucket it is, such as a user or an address, and of what. */
export type BucketName = readonly [whose: string, what: string];

/** How often somebody may do what costs others: buckets in the database, for all replicas together. */
@Injectable()
export class TokenBuckets {
  private readonly key: Buffer;

  constructor(
    private readonly statements: Statements,
    { keyPepper }: TeamsSettings,
  ) {
    this.key = derivedKey(keyPepper, 'log-in buckets');
  }

  /** Takes a token, and returns whether there was one. */
  async take(name: BucketName, { refillMs, capacityMs }: BucketRate): Promise<boolean> {
    return (await this.statements.query(takeQuery, [this.idOf(name), refillMs, capacityMs])).length > 0;
  }

  /** As `take`, within a transaction, which gives the token back where it fails. */
  async takeWithin(manager: EntityManager, name: BucketName, { refillMs, capacityMs }: BucketRate): Promise<boolean> {
    return (await manager.query<object[]>(takeQuery, [this.idOf(name), refillMs, capacityMs])).length > 0;
  }

  async giveBack(name: BucketName, { refillMs }: BucketRate): Promise<void> {
    await this.statements.query(giveBackQuery, [this.idOf(name), refillMs]);
  }

  /** Addresses of strangers stand in no table. */
  private idOf(name: BucketName): Buffer {
    return createHmac('sha256', this.key).update(JSON.stringify(name)).digest();
  }
}
