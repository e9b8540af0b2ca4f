import { Logger } from '@nestjs/common';
import type { Transactions } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';
import { Claims, type Claim } from './claims.js';
import type { BackOff } from './definition.js';
import type { DurableMachine, Outcome } from './durable-machine.js';
import type { MachineError, MachineRow } from './machine-row.js';
import { StepFailed } from './step-failed.js';

export interface WorkerOptions {
  /** `system:<service>` in histories. */
  readonly service: string;
  /** Steps of one machine that run at once in this process. 2 unless given: requests go first. */
  readonly concurrency?: number;
  /** Longest time between two looks for what is due, for what other replicas leave. 500 ms unless given. */
  readonly pollMs?: number;
  /** Longest time of one step. 10 s unless given. */
  readonly stepMs?: number;
}

const defaultBackOff: BackOff = { firstMs: 500, maxMs: 30_000 };

type Failure = Omit<MachineError, 'at'> & { isPermanent: boolean };
type Found<Row, Event extends string> = Outcome<Row, Event> | Failure | undefined;

/** Looks for what is due of one machine, does its steps, and applies what they find out where the claim still holds. Any number of them may run. */
export class MachineWorker<Row extends MachineRow, State extends string, Event extends string> {
  private readonly logger = new Logger('Machines');
  private readonly underWay = new Set<Promise<void>>();
  private readonly stopping = new AbortController();
  private readonly concurrency: number;
  private readonly pollMs: number;
  private readonly stepMs: number;
  private readonly claims: Claims<Row, State, Event>;
  private bell = new AbortController();
  private loop: Promise<void> = Promise.resolve();

  constructor(
    private readonly machine: DurableMachine<Row, State, Event>,
    dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly options: WorkerOptions,
  ) {
    ({ concurrency: this.concurrency = 2, pollMs: this.pollMs = 500, stepMs: this.stepMs = 10_000 } = options);
    this.claims = new Claims(machine, dataSource, this.stepMs);
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
    for (let found = await this.claims.make(1); found.length > 0; found = await this.claims.make(1))
      for (const claim of found) await this.take(claim);
  }

  private async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      this.bell = new AbortController();
      const free = this.concurrency - this.underWay.size;
      const found = free > 0 ? await this.claimQuietly(free) : [];
      for (const claim of found) this.begin(claim);
      if (found.length === 0 && !this.stopping.signal.aborted) await rung(this.bell.signal, this.pollMs);
    }
  }

  private begin(claim: Claim<Row>): void {
    const work = this.take(claim).finally(() => {
      this.underWay.delete(work);
      this.bell.abort();
    });
    this.underWay.add(work);
  }

  private async claimQuietly(limit: number): Promise<Claim<Row>[]> {
    try {
      return await this.claims.make(limit);
    } catch (error) {
      this.logger.warn(`What is due of ${this.machine.definition.id} could not be looked for: ${messageOf(error)}`);
      return [];
    }
  }

  private async take(claim: Claim<Row>): Promise<void> {
    const { row } = claim;
    try {
      const found = await this.find(claim);
      const isHeld = await this.transactions.run(async (manager) => {
        const held = await this.claims.held(manager, row);
        if (held) await this.apply(manager, held, found, { isOverdue: claim.leftMs <= 0, wasTouched: wasTouched(row, held) });
        return held !== undefined;
      });
      if (!isHeld && (await this.claims.endSuperseded(row))) this.wake();
    } catch (error) {
      // The claim runs out, and whoever comes then begins the step again.
      this.logger.error(`A step of ${this.machine.definition.id} in ${row.state} could not be applied: ${messageOf(error)}`);
    }
  }

  /** What the step found out, or how it failed; undefined: it was interrupted by a shutdown. */
  private async find({ row, leftMs }: Claim<Row>): Promise<Found<Row, Event>> {
    if (leftMs <= 0 && !this.isLastTry(row)) return overdue(row);
    const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(stepTimeoutMs(leftMs, this.stepMs))]);
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

  /** Nobody was there to try before the deadline: what is to be given back is tried once all the same. */
  private isLastTry({ state, attempts }: Row): boolean {
    return this.machine.ruleOf(state)?.isTriedLate === true && attempts === 0;
  }

  private async apply(manager: EntityManager, row: Row, found: Found<Row, Event>, at: Circumstances): Promise<void> {
    if (found === undefined) return this.claims.release(manager, row, {});
    if (found === 'rest') return this.rest(manager, row, at);
    if ('isPermanent' in found) return this.fail(manager, row, found, at);
    if ('againAfterMs' in found) {
      if (at.isOverdue) return this.fail(manager, row, overdue(row), at);
      const lastError = found.reason ? { ...found.reason, at: new Date().toISOString() } : row.lastError;
      return this.claims.release(manager, row, { lastError }, at.wasTouched ? undefined : found.againAfterMs);
    }
    if ('decide' in found) {
      if (!(await found.decide(manager, row))) return this.rest(manager, row, at);
      return this.claims.release(manager, row, {});
    }
    await this.move(manager, row, found.event, found.reason);
  }

  private async rest(manager: EntityManager, row: Row, { wasTouched }: Circumstances): Promise<void> {
    if (this.machine.ruleOf(row.state)) throw new Error(`${row.state} is transient: it cannot be left to rest.`);
    await this.claims.release(manager, row, {}, wasTouched ? undefined : null);
  }

  private async fail(manager: EntityManager, row: Row, { code, message, isPermanent }: Failure, at: Circumstances): Promise<void> {
    const rule = this.machine.ruleOf(row.state);
    const attempts = row.attempts + 1;
    if (rule && (isPermanent || at.isOverdue || attempts >= (rule.tries ?? Infinity))) {
      return this.move(manager, row, rule.givesUpBy as Event, { code, message });
    }
    const lastError = { code, message, at: new Date().toISOString() };
    await this.claims.release(manager, row, { attempts, lastError }, backOffMs(rule?.backOff ?? defaultBackOff, attempts));
  }

  private async move(manager: EntityManager, row: Row, event: Event, error?: Omit<MachineError, 'at'>): Promise<void> {
    const free = { claimedUntil: null } as Partial<Row>;
    const moved = await this.machine.move(manager, row, event, { actor: `system:${this.options.service}` }, free, error ?? null);
    if (!moved) throw new Error(`${event} leads nowhere from ${row.state}.`);
  }
}

/** Under which an outcome is applied. */
interface Circumstances {
  readonly isOverdue: boolean;
  /** Whether there is something new to look at, that the step could not know of. */
  readonly wasTouched: boolean;
}

/** Whole milliseconds that a step may take: until its deadline, `stepMs` at most. A late try, after the deadline, gets `stepMs`. */
export function stepTimeoutMs(leftMs: number, stepMs: number): number {
  return leftMs <= 0 ? stepMs : Math.min(stepMs, Math.ceil(leftMs));
}

function overdue({ lastError }: MachineRow): Failure {
  const why = lastError ? ` ${lastError.message}` : '';
  return { code: lastError?.code ?? 'deadline_exceeded', message: `It was not done in time.${why}`, isPermanent: true };
}

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
  return new Promise((_, reject) => {
    const end = () => reject(new Error('aborted'));
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
