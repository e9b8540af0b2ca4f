import { BringsMigrations } from '@atoll/database';
import { Column, Entity, Generated, Index, PrimaryColumn } from 'typeorm';
import { OutboxRoom1810000000000 } from './event-tables.js';

/**
 * An event that was committed with its cause and waits for the relay. Moved to `outbox_published` once the courier is
 * done with it.
 */
@BringsMigrations(OutboxRoom1810000000000)
@Entity('outbox')
export class OutboxRow {
  /** UUID version 7: the order of making. */
  @PrimaryColumn('uuid')
  id!: string;

  @Column('text')
  eventName!: string;

  @Column('jsonb')
  payload!: unknown;

  @Column('text', { nullable: true })
  requestId!: string | null;

  @Column('text', { nullable: true })
  traceparent!: string | null;

  @Column('timestamptz', { default: () => 'now()' })
  occurredAt!: Date;

  /** Deliveries that asked for another. */
  @Column('integer', { default: 0 })
  attempts!: number;

  @Column('timestamptz', { default: () => 'now()' })
  nextAttemptAt!: Date;

  /** Why the last attempt asked for another, without secrets. */
  @Column('text', { nullable: true })
  lastError!: string | null;

  /** In the order of adding; has gaps, and a slow commit appears behind later ones. */
  @Index()
  @Column('bigint')
  @Generated('increment')
  seq!: string;

  /**
   * Among all events of the service, without gaps, given by the relay before it publishes. Of two events about one
   * object the later has the greater.
   */
  @Column('bigint', { nullable: true })
  position!: string | null;

  /**
   * The position of the last event of the same name before this one, 0 for none: by it a consumer sees that it misses
   * one.
   */
  @Column('bigint', { nullable: true })
  previous!: string | null;
}
