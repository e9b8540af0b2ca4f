import { Column, Entity, PrimaryColumn } from 'typeorm';

/** An event that was committed with its cause and waits for the relay. Deleted once the courier is done with it. */
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
}
