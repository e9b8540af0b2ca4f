import { BringsMigrations } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import {
  EventGaps1811000000000,
  EventPositions1808000000000,
  InboxFetches1814000000000,
  InboxProcesses1806000000000,
  InboxTimeouts1812000000000,
  UnsignedEventCut1807000000000,
} from './event-tables.js';

/** An event that was delivered to a consumer of this service. */
@BringsMigrations(
  InboxProcesses1806000000000,
  UnsignedEventCut1807000000000,
  EventPositions1808000000000,
  EventGaps1811000000000,
  InboxTimeouts1812000000000,
  InboxFetches1814000000000,
)
@Entity('inbox')
@Index(['consumer', 'publisher', 'eventName', 'position'], { where: 'position IS NOT NULL' })
@Index('inbox_timed_out', ['consumer', 'timedOutAt'], { where: 'timed_out_at IS NOT NULL AND taken_at IS NULL' })
@Index('inbox_fetch', ['consumer', 'publisher', 'eventName', 'fetchAt'], {
  where: 'fetch_at IS NOT NULL AND taken_at IS NULL',
})
export class InboxRow {
  @PrimaryColumn('text')
  consumer!: string;

  @PrimaryColumn('uuid')
  eventId!: string;

  @Index()
  @Column('timestamptz', { default: () => 'now()' })
  receivedAt!: Date;

  /** Set in the transaction of the effect, or of the dead letter; null while the event is being tried. */
  @Column('timestamptz', { nullable: true })
  takenAt!: Date | null;

  /** Tries that ran and failed. */
  @Column('integer', { default: 0 })
  tries!: number;

  /** The process that began the last try, unless that has ended with it there. */
  @Column('uuid', { nullable: true })
  begunBy!: string | null;

  /** When that process was found without its session in the database, unless it is back. */
  @Column('timestamptz', { nullable: true })
  missedAt!: Date | null;

  /** When a statement of its effect last took longer than the database allows. */
  @Column('timestamptz', { nullable: true })
  timedOutAt!: Date | null;

  /**
   * When its publisher is asked for it again unless it has had its effect by then; null for an event that was never
   * asked for.
   */
  @Column('timestamptz', { nullable: true })
  fetchAt!: Date | null;

  /** Publisher and position of the event; null for an event of a release without positions. */
  @Column('text', { nullable: true })
  publisher!: string | null;

  @Column('text', { nullable: true })
  eventName!: string | null;

  /**
   * Its position among the events of its publisher, and that of the last one of the same name before it, as decimal
   * text.
   */
  @Column('bigint', { nullable: true })
  position!: string | null;

  @Column('bigint', { nullable: true })
  previous!: string | null;
}
