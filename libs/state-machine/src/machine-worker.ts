import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { Transactions } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';
import type { BackOff } from './definition.js';
import type { DurableMachine, Outcome } from './durable-machine.js';
import type { MachineError, MachineRow } from './machine-row.js';
import { StepFailed } from './step-failed.js';

export interface WorkerOptions {
  /** `system:<service>` in histories. */
  readonly service: string;
  /** Steps of one machine that run at once in this process. 4 unless given. */
  readonly concurrency?: number;
  /** Longest time between two looks for what is due, for what other replicas leave. 500 ms unless given. */
  readonly pollMs?: number;
  /** Longest time of one step. 10 s unless given. */
  readonly stepMs?: number;
}

/** A claim outlives its step by what applying the outcome may take. */
const marginMs = 5_000;
const defaultBackOff: BackOff = { firstMs: 500, maxMs: 30_000 };

type Failure = Omit<MachineError, 'at'> & { isPermanent: boolean };

/** Looks for what is due of one machine, does its steps, and applies what they find out where the claim still holds. Any number of them may run. */
export class MachineWorker<Row extends MachineRow, State extends string, Event extends string> {
  private readonly logger = new Logger('Machines');
  private readonly underWay = new Set<Promise<void>>();
  private readonly stopping = new AbortController();
  private readonly concurrency: number;
  private readonly pollMs: number;
  private readonly stepMs: number;
  private bell = new AbortController();
  private loop: Promise<void> = Promise.resolve();

  constructor(
    private readonly machine: DurableMachine<Row, State, Event>,
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly options: WorkerOptions,
  ) {
    ({ concurrency: this.concurrency = 4, pollMs: this.pollMs = 500, stepMs: this.stepMs = 10_000 } = options);
  }

  start(): void {
    this.loop = this.run();
  }

  /** Something may be due. */
  wake(): void {
    this.bell.abort();
  }

  /** Steps under way are told to end and waited for; what they were at is free for others at once. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.bell.abort();
    await this.loop;
    await Promise.all(this.underWay);
  }

  /** Does everything that is due now, one thing after the other, until nothing is. For specs that want no time to pass. */
  async settle(): Promise<void> {
    for (let rows = await this.claim(1); rows.length > 0; rows = await this.claim(1)) for (const row of rows) await this.take(row);
  }

  private async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      this.bell = new AbortController();
      const free = this.concurrency - this.underWay.size;
      const rows = free > 0 ? await this.claimQuietly(free) : [];
      for (const row of rows) this.begin(row);
      if (rows.length === 0 && !this.stopping.signal.aborted) await rung(this.bell.signal, this.pollMs);
    }
  }

  private begin(row: Row): void {
    const work = this.take(row).finally(() => {
      this.underWay.delete(work);
      this.bell.abort();
    });
    this.underWay.add(work);
  }

  private async claimQuietly(limit: number): Promise<Row[]> {
    try {
      return await this.claim(limit);
    } catch (error) {
      this.logger.warn(`What is due of ${this.machine.definition.id} could not be looked for: ${messageOf(error)}`);
      return [];
    }
  }

  /** A claim made before the deadline does not keep others from giving up what has passed it. */
  private async claim(limit: number): Promise<Row[]> {
    const { table, key } = this.machine;
    const claimMs = this.stepMs + marginMs;
    const [rows] = await this.dataSource.query<[object[], number]>(
      `UPDATE ${table} SET claim_token = $1, claimed_until = clock_timestamp() + $2 * interval '1 millisecond'
       WHERE ${key} IN (
         SELECT ${key} FROM ${table}
         WHERE due_at IS NOT NULL AND LEAST(due_at, deadline_at) <= clock_timestamp() AND (
           claimed_until IS NULL OR claimed_until < clock_timestamp()
           OR (deadline_at <= clock_timestamp() AND claimed_until < deadline_at + $2 * interval '1 millisecond'))
         ORDER BY due_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
       ) RETURNING *`,
      [randomUUID(), claimMs, limit],
    );
    return rows.map((row) => this.machine.rowOf(row));
  }

  private async take(row: Row): Promise<void> {
    try {
      const found = await this.find(row);
      await this.transactions.run(async (manager) => {
        const held = await this.held(manager, row);
        if (held) await this.apply(manager, held, found, wasTouched(row, held));
      });
    } catch (error) {
      // The claim runs out, and whoever comes then begins the step again.
      this.logger.error(`A step of ${this.machine.definition.id} in ${row.state} could not be applied: ${messageOf(error)}`);
    }
  }

  /** What the step found out, or how it failed; undefined: it was interrupted by a shutdown. */
  private async find(row: Row): Promise<Outcome<Row, Event> | Failure | undefined> {
    const leftMs = row.deadlineAt ? row.deadlineAt.getTime() - Date.now() : Infinity;
    if (leftMs <= 0) return this.overdue(row);
    const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(Math.min(this.stepMs, Math.max(1, leftMs)))]);
    try {
      return await Promise.race([this.machine.step(row, { signal }), aborted(signal)]);
    } catch (error) {
      if (this.stopping.signal.aborted) return undefined;
      if (error instanceof StepFailed) return { code: error.code, message: error.message, isPermanent: error.isPermanent };
      if (!signal.aborted) this.logger.error(`A step of ${this.machine.definition.id} in ${row.state} failed: ${messageOf(error)}`);
      return signal.aborted
        ? { code: 'timeout', message: 'There was no answer in time.', isPermanent: false }
        : { code: 'internal', message: 'An internal error.', isPermanent: false };
    }
  }

  private overdue({ lastError }: Row): Failure {
    const why = lastError ? ` ${lastError.message}` : '';
    return { code: lastError?.code ?? 'deadline_exceeded', message: `It was not done in time.${why}`, isPermanent: true };
  }

  /** The row, locked, if the claim is still this one. */
  private async held(manager: EntityManager, row: Row): Promise<Row | undefined> {
    const { table, key } = this.machine;
    const values = this.machine.columnsOf(row);
    const [held] = await manager.query<object[]>(`SELECT * FROM ${table} WHERE ${key} = $1 AND claim_token = $2 FOR NO KEY UPDATE`, [
      values.get(key),
      row.claimToken,
    ]);
    return held && this.machine.rowOf(held);
  }

  private async apply(manager: EntityManager, row: Row, found: Outcome<Row, Event> | Failure | undefined, isDue: boolean): Promise<void> {
    if (found === undefined) return this.release(manager, row, {});
    if (found === 'rest') return this.release(manager, row, { lastError: null, ...(!isDue && { dueAt: null }) });
    if ('isPermanent' in found) return this.fail(manager, row, found);
    if ('againAfterMs' in found) {
      const lastError = found.reason ? { ...found.reason, at: new Date().toISOString() } : row.lastError;
      return this.release(manager, row, { lastError, ...(!isDue && { dueAt: new Date(Date.now() + found.againAfterMs) }) });
    }
    if ('decide' in found) {
      if (await found.decide(manager, row)) return;
      return this.release(manager, row, isDue ? {} : { dueAt: null });
    }
    await this.machine.move(manager, row, found.event, this.cause, {}, found.reason ?? null);
  }

  private async fail(manager: EntityManager, row: Row, { code, message, isPermanent }: Failure): Promise<void> {
    const rule = this.machine.ruleOf(row.state);
    const attempts = row.attempts + 1;
    if (rule && (isPermanent || attempts >= (rule.tries ?? Infinity))) {
      await this.machine.move(manager, row, rule.givesUpBy as Event, this.cause, {}, { code, message });
      return;
    }
    const dueAt = new Date(Date.now() + backOffMs(rule?.backOff ?? defaultBackOff, attempts));
    await this.release(manager, row, { attempts, dueAt, lastError: { code, message, at: new Date().toISOString() } });
  }

  private async release(manager: EntityManager, row: Row, values: Partial<MachineRow>): Promise<void> {
    const { table, key } = this.machine;
    const set = this.machine.columnsOf({ ...values, claimToken: null, claimedUntil: null });
    const assignments = [...set.keys()].map((name, at) => `${name} = $${at + 2}`).join(', ');
    const id = this.machine.columnsOf(row).get(key);
    await manager.query(`UPDATE ${table} SET ${assignments} WHERE ${key} = $1`, [id, ...set.values()]);
  }

  private get cause(): { actor: string } {
    return { actor: `system:${this.options.service}` };
  }
}

/** Whether there is something new to look at, that the step could not know of. */
function wasTouched(claimed: MachineRow, held: MachineRow): boolean {
  return held.dueAt?.getTime() !== claimed.dueAt?.getTime();
}

/** Milliseconds before try n + 1 after n failures: doubled each time, with up to half of it taken off by chance, so that many do not come back as one. */
function backOffMs({ firstMs, maxMs }: BackOff, failures: number): number {
  return Math.round(Math.min(maxMs, firstMs * 2 ** (failures - 1)) * (1 - Math.random() / 2));
}

function rung(bell: AbortSignal, timeoutMs: number): Promise<void> {
  if (bell.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, timeoutMs);
    bell.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true }));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
