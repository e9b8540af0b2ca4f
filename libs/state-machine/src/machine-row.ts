import type { CallContext } from '@atoll/contracts';
import { Column } from 'typeorm';

/** What went wrong last, in words for whoever waits. Never holds a secret. */
export interface MachineError {
  readonly code: string;
  readonly message: string;
  /** ISO 8601. */
  readonly at: string;
}

/** The columns that make a row an instance of a machine; `machineColumns` is the same in SQL. */
export abstract class MachineRow {
  @Column('text')
  state!: string;

  /** To the millisecond, by the database's clock, as all instants here. */
  @Column({ type: 'timestamp with time zone', precision: 3, default: () => 'clock_timestamp()' })
  enteredAt!: Date;

  /** Of the present state; null where it is stable. */
  @Column({ type: 'timestamp with time zone', precision: 3, nullable: true })
  deadlineAt!: Date | null;

  /** When a worker looks at it next; null: nothing is to be done. */
  @Column({ type: 'timestamp with time zone', precision: 3, nullable: true })
  dueAt!: Date | null;

  /** Tries of the present state's step that failed. */
  @Column('integer', { default: 0 })
  attempts!: number;

  @Column('jsonb', { nullable: true })
  lastError!: MachineError | null;

  /** Of the worker that is at it; what comes with another token is dropped. */
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

/** For CREATE TABLE. */
export const machineColumns = `state text NOT NULL,
    entered_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    deadline_at timestamptz(3),
    due_at timestamptz(3),
    attempts integer NOT NULL DEFAULT 0,
    last_error jsonb,
    claim_token uuid,
    claimed_until timestamptz(3),
    revision integer NOT NULL DEFAULT 0,
    request_id text`;

/** The statement for the index by which workers find what is due. The entity names it: `@Index('<table>_due', { synchronize: false })`. */
export function dueIndex(table: string): string {
  return `CREATE INDEX ${table}_due ON ${table} (due_at) WHERE due_at IS NOT NULL`;
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
