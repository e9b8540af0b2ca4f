import type { CallContext } from '@atoll/contracts';
import { Column, Index } from 'typeorm';
import { indexesOf } from './machine-tables.js';

/** What went wrong last, in words for whoever waits. Never holds a secret. */
export interface MachineError {
  readonly code: string;
  readonly message: string;
  /** ISO 8601. */
  readonly at: string;
}

/** The columns that make a row an instance of a machine. Only this library writes them. In SQL: `machineColumns` and `addLanes`. */
export abstract class MachineRow {
  @Column('text')
  state!: string;

  /** To the millisecond, by the database's clock, as all instants here. */
  @Column({ type: 'timestamp with time zone', precision: 3, default: () => 'clock_timestamp()' })
  enteredAt!: Date;

  /** Of the present state; null where it is stable. */
  @Column({ type: 'timestamp with time zone', precision: 3, nullable: true })
  deadlineAt!: Date | null;

  /** Since when it waits in its lane for a worker; null: nothing is to be done now. */
  @Column({ type: 'timestamp with time zone', precision: 3, nullable: true })
  dueAt!: Date | null;

  /** Until when it is left alone: due from then on. Not set together with `dueAt`. */
  @Column({ type: 'timestamp with time zone', precision: 3, nullable: true })
  parkedUntil!: Date | null;

  /** What its step depends on now, such as a node. Rows of one lane wait for each other, and for no other lane's. */
  @Column('text', { default: '' })
  lane!: string;

  /** The lanes in which its step is still to be done after this one. */
  @Column('text', { array: true, default: () => "'{}'" })
  furtherLanes!: string[];

  /** Tries of the present state's step that failed. */
  @Column('integer', { default: 0 })
  attempts!: number;

  @Column('jsonb', { nullable: true })
  lastError!: MachineError | null;

  /** The token of the claim under which a worker runs its step. A result that comes with another token is discarded. */
  @Column('uuid', { nullable: true })
  claimToken!: string | null;

  @Column({ type: 'timestamp with time zone', precision: 3, nullable: true })
  claimedUntil!: Date | null;

  /** Counts transitions. */
  @Column('integer', { default: 0 })
  revision!: number;

  /** Of the request that led here. */
  @Column('text', { nullable: true })
  requestId!: string | null;
}

/** Declares the indexes that `addLanes` creates on the entity's table. */
export function MachineIndexes(table: string): ClassDecorator {
  return (entity) => {
    for (const name of Object.values(indexesOf(table))) Index(name, { synchronize: false })(entity);
  };
}

/** Who moved an instance, and why. */
export interface Cause {
  /** `user:<id>` or `system:<service>`. */
  readonly actor: string;
  readonly requestId?: string | null;
  readonly reason?: string;
}

/** The caller of an operation as a cause. */
export function causeOf({ caller, requestId }: CallContext, reason?: string): Cause {
  const actor = caller.kind === 'user' ? `user:${caller.userId}` : `system:${caller.service}`;
  return { actor, requestId, ...(reason !== undefined && { reason }) };
}
