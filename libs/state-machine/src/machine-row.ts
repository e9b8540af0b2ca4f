import type { CallContext } from '@atoll/contracts';
import { instant } from '@atoll/database';
import { Column, Index } from 'typeorm';
import { failedIndexOf, indexesOf, parkedRetriedIndexOf, restIndexesOf } from './machine-migrations.js';

/** The last error, shown to callers. Never holds a secret. */
export interface MachineError {
  readonly code: string;
  readonly message: string;
  /** ISO 8601. */
  readonly at: string;
}

/** The columns of a machine's table. Only this library writes them. In SQL: `machineColumns`, then `addLanes`. */
export abstract class MachineRow {
  @Column('text')
  state!: string;

  /** When the row entered its state. All instants here are in milliseconds, by the database's clock. */
  @Column({ ...instant, default: () => 'clock_timestamp()' })
  enteredAt!: Date;

  /** Deadline of the current state; null in stable states. */
  @Column({ ...instant, nullable: true })
  deadlineAt!: Date | null;

  /** Since when the row waits in its lane for a worker; null if its step need not run now. */
  @Column({ ...instant, nullable: true })
  dueAt!: Date | null;

  /** When the row becomes due, if its step is postponed. Not set together with `dueAt`. */
  @Column({ ...instant, nullable: true })
  parkedUntil!: Date | null;

  /**
   * What the step depends on, such as a node. Rows of one lane wait for each other, but never for rows of other lanes.
   */
  @Column('text', { default: '' })
  lane!: string;

  /** The lanes that the step visits after this one. */
  @Column('text', { array: true, default: () => "'{}'" })
  furtherLanes!: string[];

  /** Failed tries of the current state's step. */
  @Column('integer', { default: 0 })
  attempts!: number;

  @Column('jsonb', { nullable: true })
  lastError!: MachineError | null;

  /** Token of the claim under which a worker runs the step. Results with another token are discarded. */
  @Column('uuid', { nullable: true })
  claimToken!: string | null;

  @Column({ ...instant, nullable: true })
  claimedUntil!: Date | null;

  /** Number of transitions so far. */
  @Column('integer', { default: 0 })
  revision!: number;

  /** Id of the request that caused the last transition. */
  @Column('text', { nullable: true })
  requestId!: string | null;
}

/**
 * Declares the indexes that `addLanes`, `addFailedIndex`, `addParkedRetriedIndex` and `addRestIndexes` leave on the
 * entity's table, for the drift check.
 */
export function MachineIndexes(table: string): ClassDecorator {
  return (entity) => {
    const { parked, deadline } = indexesOf(table);
    const rest = Object.values(restIndexesOf(table));
    const names = [...rest, parked, deadline, failedIndexOf(table), parkedRetriedIndexOf(table)];
    for (const name of names) Index(name, { synchronize: false })(entity);
  };
}

/** Who has caused a transition, and why. */
export interface Cause {
  /** `user:<id>` or `system:<service>`. */
  readonly actor: string;
  readonly requestId?: string | null;
  readonly reason?: string;
}

/** The caller of an operation as the cause of a transition. */
export function causeOf({ caller, requestId }: CallContext, reason?: string): Cause {
  const actor = caller.kind === 'user' ? `user:${caller.userId}` : `system:${caller.service}`;
  return { actor, requestId, ...(reason !== undefined && { reason }) };
}
