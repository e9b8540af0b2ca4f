import { randomUUID } from 'node:crypto';
import type { DataSource, EntityManager } from 'typeorm';
import type { DurableMachine } from './durable-machine.js';
import type { MachineRow } from './machine-row.js';

export interface Claim<Row> {
  readonly row: Row;
  /** Until its deadline, by the database's clock; 0 or less: it has passed. */
  readonly leftMs: number;
}

/** A claim outlives its step by what applying the outcome may take. */
const marginMs = 5_000;

/** The claims of workers on the rows of one machine: made, held against, and given up. All instants are the database's. */
export class Claims<Row extends MachineRow, State extends string, Event extends string> {
  constructor(
    private readonly machine: DurableMachine<Row, State, Event>,
    private readonly dataSource: DataSource,
    private readonly stepMs: number,
  ) {}

  /**
   * Rows that are due, in the order they became so. A claim made before a deadline does not keep others from what has passed it. After a move by somebody
   * else the claim of a step that is still under way holds, so that the next step does not meet what that one is doing.
   */
  async make(limit: number): Promise<Claim<Row>[]> {
    const { table, key } = this.machine;
    const [rows] = await this.dataSource.query<[(object & { left_ms: string | null })[], number]>(
      `WITH due AS MATERIALIZED (
         SELECT ${key} FROM ${table}
         WHERE due_at IS NOT NULL AND LEAST(due_at, deadline_at) <= clock_timestamp() AND (
           claimed_until IS NULL OR claimed_until < clock_timestamp()
           OR (deadline_at <= clock_timestamp() AND claimed_until < deadline_at + $2 * interval '1 millisecond'))
         ORDER BY due_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
       )
       UPDATE ${table} SET claim_token = $1, claimed_until = clock_timestamp() + $2 * interval '1 millisecond'
       WHERE ${key} IN (SELECT ${key} FROM due)
       RETURNING *, extract(epoch FROM deadline_at - clock_timestamp()) * 1000 AS left_ms`,
      [randomUUID(), this.stepMs + marginMs, limit],
    );
    return rows.map((raw) => ({ row: this.machine.rowOf(raw), leftMs: raw.left_ms === null ? Infinity : Number(raw.left_ms) }));
  }

  /** The row, locked, if the claim is still this one. */
  async held(manager: EntityManager, row: Row): Promise<Row | undefined> {
    const { table, key } = this.machine;
    const [held] = await manager.query<object[]>(`SELECT * FROM ${table} WHERE ${key} = $1 AND claim_token = $2 FOR NO KEY UPDATE`, [
      this.machine.keyOf(row),
      row.claimToken,
    ]);
    return held && this.machine.rowOf(held);
  }

  /** Gives up the claim on a row that is locked. It is due again in so many milliseconds; null: not by itself; left out: as it is. */
  async release(manager: EntityManager, row: Row, values: Partial<MachineRow>, dueInMs?: number | null): Promise<void> {
    const { table, key } = this.machine;
    const set = this.machine.columnsOf({ ...values, claimToken: null, claimedUntil: null });
    const assignments = [...set.keys()].map((name, at) => `${name} = $${at + 2}`);
    const parameters = [this.machine.keyOf(row), ...set.values()];
    if (dueInMs !== undefined) {
      parameters.push(dueInMs);
      assignments.push(`due_at = clock_timestamp() + $${parameters.length} * interval '1 millisecond'`);
    }
    await manager.query(`UPDATE ${table} SET ${assignments.join(', ')} WHERE ${key} = $1`, parameters);
  }

  /** The step of a claim on a row that somebody else has moved meanwhile has ended: the row's next step may begin. Whether that was so. */
  async endSuperseded(row: Row): Promise<boolean> {
    const { table, key } = this.machine;
    const [, count] = await this.dataSource.query<[unknown, number]>(
      `UPDATE ${table} SET claimed_until = NULL WHERE ${key} = $1 AND claim_token IS NULL AND claimed_until = $2`,
      [this.machine.keyOf(row), row.claimedUntil],
    );
    return count > 0;
  }
}
