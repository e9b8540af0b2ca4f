import { BringsMigrations } from '@atoll/database';
import { Column, Entity, PrimaryColumn, Unique } from 'typeorm';
import { DeadLetterRetries1809000000000 } from './event-tables.js';

/** An event whose effect on one consumer failed for good. It waits here until somebody retries it. */
@BringsMigrations(DeadLetterRetries1809000000000)
@Entity()
@Unique(['consumer', 'eventId'])
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
