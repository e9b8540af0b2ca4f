import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** An event that a consumer of this service has met. */
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

  /** Tries that failed, or were begun and never heard of again. */
  @Column('integer', { default: 0 })
  tries!: number;
}
