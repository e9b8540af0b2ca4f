import { BringsMigrations } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { InboxProcesses1806000000000, UnsignedEventCut1807000000000 } from './event-tables.js';

/** An event that was delivered to a consumer of this service. */
@BringsMigrations(InboxProcesses1806000000000, UnsignedEventCut1807000000000)
@Entity('inbox')
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
}
