import { inBackground, type Transactions } from '@atoll/database';
import { isAppError } from '@atoll/errors';
import { Logger } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { backOffMs, type BackOff } from './back-off.js';
import { ClaimKeeper, type KeptClaim } from './claim-keeper.js';
import { Claims, type Claim } from './claims.js';
import type { DurableMachine } from './durable-machine.js';
import { Lanes } from './lanes.js';
import type { MachineError, MachineRow } from './machine-row.js';
import { runStep, stepTimeoutMs, type Failure, type Found } from './run-step.js';
import { WakeUp } from './wake-up.js';

export interface WorkerOptions {
  /** Recorded as the actor `system:<service>`. */
  readonly service: string;
  /**
   * Steps of one machine that run at once in this process. Default 500: a running step mostly waits, and holds no
   * database connection meanwhile.
   */
  readonly concurrency?: number;
  /** Steps of one lane that run at once in this process. Default 4. */
  readonly laneConcurrency?: number;
  /** Milliseconds between two polls, which find what other replicas have made due. Default 500. */
  readonly pollMs?: number;
  /** Time limit of a step in milliseconds. Default 10,000. */
  readonly stepMs?: number;
  /** Milliseconds between two sweeps (`DurableMachine.sweep`). Default 30,000. */
  readonly sweepMs?: number;
}

const defaultBackOff: BackOff = { firstMs: 500, maxMs: 30_000 };
/** Rows past their deadline that one worker gives up at a time. */
const maxOverdue = 50;

/**
 * Claims the due rows of one machine, runs their steps, and applies the results if the claim still holds. Any number of
 * workers may run.
 */
export class MachineWorker<Row extends MachineRow, State extends string, Event extends string> {
  private readonly logger = new Logger('Machines');
  private readonly underWay = new Set<Promise<void>>();
  private readonly stopping = new AbortController();
  private readonly wakeUp = new WakeUp();
  private readonly pollMs: number;
  private readonly stepMs: number;
  private readonly sweepMs: number;
  private readonly claims: Claims<Row, State, Event>;
  private readonly lanes: Lanes;
  private pollAtMs = 0;
  private sweepAtMs = 0;
  private overdue = 0;
  private loop: Promise<void> = Promise.resolve();

  /** `keeper`: shared by all workers of a process, so that one statement extends all their claims. */
  constructor(
    private readonly machine: DurableMachine<Row, State, Event>,
    dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly options: WorkerOptions,
    private readonly keeper = new ClaimKeeper(dataSource),
  ) {
    const { concurrency = 500, laneConcurrency = 4 } = options;
    ({ pollMs: this.pollMs = 500, stepMs: this.stepMs = 10_000, sweepMs: this.sweepMs = 30_000 } = options);
    this.claims = new Claims(machine, dataSource, keeper.claimMs);
    this.lanes = new Lanes({ concurrency, laneConcurrency });
  }

  start(): void {
    this.loop = inBackground(() => this.run());
  }

  /** Makes the worker look for due rows now. */
  readonly wake = (): void => this.wakeUp.ring();

  /** Aborts running steps and waits for them. Their rows are free for other workers at once. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.wake();
    await this.loop;
    await Promise.all(this.underWay);
  }

  /** Sweeps, then runs all due steps one after the other until none is due. For specs. */
  async settle(): Promise<void> {
    await inBackground(() => this.sweep());
    while (await this.doNext());
  }

  /** Runs one due step, and returns whether there was one. For specs. */
  doNext(): Promise<boolean> {
    return inBackground(async () => {
      await this.claims.unpark();
      const [overdue] = await this.claims.makeOverdue(1, this.lanes);
      const claim = overdue ?? (await this.claims.make(1, this.lanes))[0];
      if (claim) await this.take(claim);
      return claim !== undefined;
    });
  }

  private async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      const found = await this.look();
      if (found === 0) await this.wakeUp.wait(Math.max(0, this.pollAtMs - performance.now()));
    }
  }

  /** Begins the steps of due rows, and returns how many. */
  private async look(): Promise<number> {
    try {
      const overdue = await this.poll();
      const due = this.lanes.free > 0 ? await this.claims.make(this.lanes.free, this.lanes) : [];
      for (const claim of [...overdue, ...due]) this.begin(claim);
      return overdue.length + due.length;
    } catch (error) {
      this.logger.warn(`Cannot claim due rows of ${this.machine.definition.id}; retrying: ${messageOf(error)}`);
      return 0;
    }
  }

  /** Sweeps, makes postponed rows due, and claims rows past their deadline, when it is time for it. */
  private async poll(): Promise<Claim<Row>[]> {
    const nowMs = performance.now();
    if (nowMs < this.pollAtMs) return [];
    this.pollAtMs = nowMs + this.pollMs;
    if (nowMs >= this.sweepAtMs) {
      this.sweepAtMs = nowMs + this.sweepMs;
      await this.sweep();
    }
    await this.claims.unpark();
    return this.overdue < maxOverdue ? this.claims.makeOverdue(maxOverdue - this.overdue, this.lanes) : [];
  }

  private async sweep(): Promise<void> {
    await this.claims.touch(await this.machine.sweep());
  }

  private begin(claim: Claim<Row>): void {
    const work = this.take(claim).finally(() => {
      this.underWay.delete(work);
      this.wake();
    });
    this.underWay.add(work);
  }

  /** Runs the step of a claimed row and applies its result. Never throws. */
  private async take(claim: Claim<Row>): Promise<void> {
    const isGivenUp = this.isGivenUp(claim);
    if (isGivenUp) this.overdue += 1;
    else this.lanes.begin(claim.row.lane);
    const kept = this.keeper.keep(this.machine, claim);
    try {
      await this.apply(kept, claim, isGivenUp ? deadlineExceeded(claim.row) : await this.find(claim, kept));
    } catch (error) {
      // The claim expires, and another worker runs the step again.
      const sentence = `Cannot apply the result of a step of ${this.machine.definition.id} in ${claim.row.state}; it will run again: ${messageOf(error)}`;
      if (isAppError(error) && error.code === 'unavailable') this.logger.warn(sentence);
      else this.logger.error(sentence);
    } finally {
      this.keeper.drop(kept);
      if (isGivenUp) this.overdue -= 1;
      else this.lanes.end(claim.row.lane);
    }
  }

  /** Whether the row is past its deadline and gets no late try. */
  private isGivenUp({ row: { state, attempts, lane }, leftMs }: Claim<Row>): boolean {
    if (leftMs > 0) return false;
    const isTriedLate = this.machine.ruleOf(state)?.givesBack === true && attempts === 0;
    return !isTriedLate || this.lanes.hanging.includes(lane);
  }

  private async find({ row, leftMs }: Claim<Row>, kept: KeptClaim): Promise<Found<Row, Event>> {
    const timeoutMs = stepTimeoutMs(leftMs, this.stepMs);
    const found = await runStep(this.machine, row, { timeoutMs, stopping: this.stopping.signal, claim: kept });
    if (typeof found === 'object' && 'isPermanent' in found && found.code === 'timeout') {
      // A timeout after next to no time says nothing about the lane.
      if (timeoutMs >= Math.min(this.stepMs, 1_000)) this.lanes.hung(row.lane);
    } else if (isAnswer(found)) this.lanes.answered(row.lane);
    return found;
  }

  private async apply(kept: KeptClaim, { row }: Claim<Row>, found: Found<Row, Event>): Promise<void> {
    const isHeld = await this.transactions.run(async (manager) => {
      const held = await this.claims.held(manager, row);
      if (held) await this.applyHeld(manager, held.row, found, { isOverdue: held.isOverdue, wasTouched: wasTouched(row, held.row) });
      return held !== undefined;
    });
    if (!isHeld && (await this.claims.endSuperseded(row, kept.until))) this.wake();
  }

  private async applyHeld(manager: EntityManager, row: Row, found: Found<Row, Event>, at: Circumstances): Promise<void> {
    if (found === undefined) return this.claims.release(manager, row, {}, 'as it is');
    if (found === 'rest') return this.rest(manager, row, at);
    if (found === 'lane done') return this.goOn(manager, row);
    if (found === 'other lanes') {
      await this.machine.assignLanes(manager, [String(this.machine.keyOf(row))]);
      return this.claims.release(manager, row, {}, { inMs: 0 });
    }
    if ('isPermanent' in found) return this.fail(manager, row, found, at);
    if ('againAfterMs' in found) {
      if (at.isOverdue) return this.fail(manager, row, deadlineExceeded(row), at);
      const { reason } = found;
      const lastError = reason === undefined ? row.lastError : reason && { ...reason, at: new Date().toISOString() };
      return this.release(manager, row, { ...found.values, lastError }, at, found.againAfterMs);
    }
    if ('decide' in found) {
      if (!(await found.decide(manager, row))) return this.rest(manager, row, at);
      return this.claims.release(manager, row, {}, 'as it is');
    }
    await this.move(manager, row, found.event, found.reason);
  }

  private async rest(manager: EntityManager, row: Row, { wasTouched }: Circumstances): Promise<void> {
    if (this.machine.ruleOf(row.state)) throw new Error(`${row.state} is transient: it cannot be left to rest.`);
    await this.claims.release(manager, row, {}, wasTouched ? 'as it is' : 'not by itself');
  }

  private async goOn(manager: EntityManager, row: Row): Promise<void> {
    if (row.furtherLanes.length === 0) throw new Error(`${row.state} has no further lane.`);
    await this.claims.release(manager, row, {}, { inMs: 0 }, 'done');
  }

  private async release(manager: EntityManager, row: Row, values: Partial<MachineRow>, at: Circumstances, inMs: number): Promise<void> {
    await this.claims.release(manager, row, values, at.wasTouched ? 'as it is' : { inMs });
    if (!at.wasTouched) this.pollAtMs = Math.min(this.pollAtMs, performance.now() + inMs);
  }

  private async fail(manager: EntityManager, row: Row, { code, message, isPermanent }: Failure, at: Circumstances): Promise<void> {
    const rule = this.machine.ruleOf(row.state);
    const attempts = row.attempts + 1;
    const isHopeless = isPermanent && !(rule?.givesBack && row.furtherLanes.length >= attempts);
    if (rule && (isHopeless || at.isOverdue || attempts >= (rule.tries ?? Infinity))) {
      return this.move(manager, row, rule.givesUpBy as Event, { code, message });
    }
    const lastError = { code, message, at: new Date().toISOString() };
    const inMs = backOffMs(rule?.backOff ?? defaultBackOff, attempts);
    await this.claims.release(manager, row, { attempts, lastError }, { inMs }, 'later');
    this.pollAtMs = Math.min(this.pollAtMs, performance.now() + inMs);
  }

  private async move(manager: EntityManager, row: Row, event: Event, error?: Omit<MachineError, 'at'>): Promise<void> {
    const free = { claimedUntil: null } as Partial<Row>;
    const moved = await this.machine.move(manager, row, event, { actor: `system:${this.options.service}` }, free, error ?? null);
    if (!moved) throw new Error(`${event} leads nowhere from ${row.state}.`);
  }
}

/** Whether a step got so far that its lane does not hang. One that only waits or looks may not have needed its lane. */
function isAnswer(found: Found<MachineRow, string>): boolean {
  if (found === undefined || found === 'rest' || found === 'other lanes') return false;
  return found === 'lane done' || 'event' in found || 'isPermanent' in found;
}

/** What is found under the row lock when a result is applied. */
interface Circumstances {
  readonly isOverdue: boolean;
  /** Whether the row was touched while its step ran. */
  readonly wasTouched: boolean;
}

/** With what was last wrong. An error that was kept from the state before may say so already. */
function deadlineExceeded({ lastError }: MachineRow): Failure {
  const said = 'Deadline exceeded';
  const message = !lastError ? `${said}.` : lastError.message.startsWith(said) ? lastError.message : `${said}: ${lastError.message}`;
  return { code: lastError?.code ?? 'deadline_exceeded', message, isPermanent: true };
}

function wasTouched(claimed: MachineRow, held: MachineRow): boolean {
  return held.dueAt?.getTime() !== claimed.dueAt?.getTime();
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
