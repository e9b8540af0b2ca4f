import { BringsMigrations } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';
import { DeadLetterIndexes1813000000000, DeadLetterRetries1809000000000 } from './event-tables.js';

/** An event that one consumer could not handle. It is kept here until an operator retries it. */
@BringsMigrations(DeadLetterRetries1809000000000, DeadLetterIndexes1813000000000)
@Entity()
@Unique(['consumer', 'eventId'])
@Index('dead_letter_retry', ['retryRequestedAt'], { where: 'retry_requested_at IS NOT NULL' })
@Index('dead_letter_latest', ['lastFailedAt', 'id'])
export class DeadLetter {
  @PrimaryColumn('uuid')
  id!: string;

  @Column('text')
  consumer!: string;

  @Column('uuid')
  eventId!: string;

  @Column('text')
  eventName!: string;

  @Column('jsonb')
  payload!: unknown;

  @Column('timestamptz')
  occurredAt!: Date;

  @Column('text', { nullable: true })
  requestId!: string | null;

  @Column('text', { nullable: true })
  traceparent!: string | null;

  /** What the last try failed of, without secrets. */
  @Column('text')
  lastError!: string;

  @Column('integer')
  tries!: number;

  @Column('timestamptz')
  firstFailedAt!: Date;

  @Column('timestamptz')
  lastFailedAt!: Date;

  /** Set where an operator wants it tried once more, until it was. */
  @Column('timestamptz', { nullable: true })
  retryRequestedAt!: Date | null;
}
