import { Statements } from '@atoll/database';
import type { ServiceUnderTest } from '@atoll/testing';

const machines = ['gpu', 'node', 'subscription', 'workload'];
/** In SQL: on its way, though it has no deadline, or none yet. */
const withoutDeadline = `state IN ('draining', 'preparing', 'initialising')`;
/** In SQL: rows whose time passes. */
const isTimed = 'due_at IS NOT NULL OR parked_until IS NOT NULL';
const isSwitching = 'ready_at > clock_timestamp()';

const timed = [
  ...machines.map((table) => `SELECT '${table}' AS passes WHERE EXISTS (SELECT FROM ${table} WHERE ${isTimed})`),
  `SELECT 'simulated_device' WHERE EXISTS (SELECT FROM simulated_device WHERE ${isSwitching})`,
  `SELECT 'node_trouble' WHERE EXISTS (SELECT FROM node_trouble)`,
  // What was before the draining of a workload does not matter to it.
  `SELECT 'pod_end' WHERE EXISTS (SELECT FROM workload WHERE state = 'draining')`,
].join(' UNION ALL ');

/** Rows are locked in the order of their keys, as the service locks them, and those of one table at a time. */
const passing: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    machines.map((table) => [
      table,
      `UPDATE ${table} SET due_at = due_at - back, parked_until = parked_until - back, deadline_at = deadline_at - back,
         claimed_until = claimed_until - back
       FROM (SELECT $1 * interval '1 second' AS back) passed
       WHERE ${table}_id IN (SELECT ${table}_id FROM ${table} WHERE ${isTimed} ORDER BY ${table}_id FOR NO KEY UPDATE)`,
    ]),
  ),
  simulated_device: `UPDATE simulated_device SET ready_at = ready_at - $1 * interval '1 second' WHERE ${isSwitching}`,
  node_trouble: `UPDATE node_trouble SET failed_at = failed_at - back, avoided_until = avoided_until - back
    FROM (SELECT $1 * interval '1 second' AS back) passed`,
  pod_end: `WITH back AS (SELECT $1 * interval '1 second' AS back),
    started AS (UPDATE service_start SET started_at = started_at - back FROM back)
    UPDATE pod_end SET ended_at = ended_at - back FROM back WHERE ended_at IS NOT NULL`,
};

/**
 * In SQL: when a row is due, or out of time: at once where it has yet to begin; null where time brings nothing about.
 */
const nextAt = `CASE WHEN ${isTimed}
    THEN LEAST(deadline_at, CASE WHEN due_at IS NULL THEN parked_until ELSE GREATEST(due_at, claimed_until) END)
    WHEN deadline_at IS NULL THEN clock_timestamp() END`;
const onTheWay = `SELECT sum(transient)::int AS transient, extract(epoch FROM min(next_at) - clock_timestamp())::float AS seconds,
    EXISTS (SELECT FROM capacity_change) AS "isUntold" FROM (${machines
      .map(
        (table) => `
      SELECT count(*) FILTER (WHERE deadline_at IS NOT NULL OR ${withoutDeadline}) AS transient, min(${nextAt}) AS next_at
      FROM ${table} WHERE deadline_at IS NOT NULL OR ${withoutDeadline} OR ${isTimed}`,
      )
      .join(' UNION ALL ')}) each_machine`;

export interface OnTheWay {
  /** How many rows. */
  readonly transient: number;
  /** Until the next of them is due, or out of time; null where time brings nothing about. */
  readonly seconds: number | null;
  /** Whether changes of what teams hold have still to be told. */
  readonly isUntold: boolean;
}

/** Time that passes for the machines of a service whose workers are idle. */
export class VirtualTime {
  constructor(private readonly fixture: ServiceUnderTest) {}

  private query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.fixture.get(Statements).query<Row>(sql, values);
  }

  async onTheWay(): Promise<OnTheWay> {
    const [found] = await this.query<OnTheWay>(onTheWay);
    return found ?? { transient: 0, seconds: null, isUntold: false };
  }

  /** As if so much time had passed. */
  async pass(seconds: number): Promise<void> {
    for (const { passes } of await this.query<{ passes: string }>(timed))
      await this.query(passing[passes] ?? '', [seconds]);
  }

  /** Passes to where the next thing is due: `least` seconds at least and `most` at most. Returns how many. */
  async passToNext(least: number, most: number): Promise<number> {
    const { seconds } = await this.onTheWay();
    return this.passTo(seconds, least, most);
  }

  async passTo(next: number | null, least: number, most: number): Promise<number> {
    const seconds = Math.min(most, Math.max(least, next ?? most));
    await this.pass(seconds);
    return seconds;
  }
}
