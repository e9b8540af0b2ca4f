import { setTimeout as delay } from 'node:timers/promises';
import { inBackground, isOutage, OutageLog, QueueTime, type Transactions } from '@atoll/database';
import { WakeUp } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { ClaimKeeper } from './claim-keeper.js';
import { Claims, type Claim } from './claims.js';
import { DuePoll } from './due-poll.js';
import type { DurableMachine } from './durable-machine.js';
import { leftMsOf, type Held, type Result } from './held-claim.js';
import { Lanes } from './lanes.js';
import type { MachineRow } from './machine-row.js';
import type { Outcome, StepContext } from './outcome.js';
import { deadlineExceeded, OutcomeWriter, wasTouched } from './outcome-writer.js';
import {
  inLine,
  isAnswer,
  isCutShort,
  isTimeout,
  runStep,
  stepTimeoutMs,
  type Found,
  type StepLimits,
} from './run-step.js';
import type { WorkerOptions } from './worker-options.js';

/** Rows past their deadline that one worker gives up at a time. */
const maxOverdue = 50;
/** Rows of one lane whose steps run together, at most. */
const maxTogether = 100;
/**
 * Milliseconds between two looks for due rows, for each step that is under way, and at most: the more there is to do,
 * the more each look finds, while a row by itself waits for nothing.
 */
const rest = { eachMs: 4, mostMs: 50 };

/**
 * Claims the due rows of one machine, runs their steps, and applies the results if the claim still holds. Any number of
 * workers may run.
 */
export class MachineWorker<Row extends MachineRow, State extends string, Event extends string> {
  private readonly underWay = new Set<Promise<void>>();
  private readonly stopping = new AbortController();
  private readonly wakeUp = new WakeUp();
  private readonly stepMs: number;
  private readonly sweepMs: number;
  private readonly claims: Claims<Row, State, Event>;
  private readonly lanes: Lanes;
  private readonly outages = new OutageLog(new Logger('Machines'));
  private readonly writer: OutcomeWriter<Row, State, Event>;
  private pollAtMs = 0;
  private sweepAtMs = 0;
  private overdue = 0;
  private loop = Promise.resolve();

  /** `keeper` and `duePoll`: shared by all workers of a process, so that one statement does it for all of them. */
  constructor(
    private readonly machine: DurableMachine<Row, State, Event>,
    dataSource: DataSource,
    private readonly transactions: Transactions,
    options: WorkerOptions,
    private readonly keeper = new ClaimKeeper(dataSource),
    private readonly duePoll = new DuePoll(dataSource, options.pollMs),
  ) {
    const { concurrency = 500, laneConcurrency = 4 } = options;
    ({ stepMs: this.stepMs = 10_000, sweepMs: this.sweepMs = 30_000 } = options);
    this.claims = new Claims(machine, dataSource, keeper.claimMs);
    this.lanes = new Lanes({ concurrency, laneConcurrency });
    const dueIn = (inMs: number) => (this.pollAtMs = Math.min(this.pollAtMs, performance.now() + inMs));
    this.writer = new OutcomeWriter(machine, this.claims, `system:${options.service}`, dueIn);
  }

  start(): void {
    this.loop = this.inTurn(() => this.run());
    this.duePoll.add(this.machine, this.pollNow);
  }

  /** Makes the worker look for due rows now. */
  readonly wake = (): void => this.wakeUp.ring();

  private readonly pollNow = (): void => {
    this.pollAtMs = 0;
    this.wake();
  };

  /** Aborts running steps and waits for them. Their rows are free for other workers at once. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.wake();
    await this.duePoll.drop(this.machine);
    await this.loop;
    await Promise.all(this.underWay);
  }

  /** Sweeps, then runs all due steps one after the other until none is due. For specs. */
  async settle(): Promise<void> {
    await this.sweep();
    while (await this.doNext());
  }

  /** Runs one due step, and returns whether there was one. For specs. */
  doNext(): Promise<boolean> {
    return this.inTurn(async () => {
      await this.claims.unpark();
      const [overdue] = await this.claims.makeOverdue(1, this.lanes);
      const next = async () => (await this.claims.make(1, this.lanes))[0];
      const claim = overdue ?? (await next()) ?? ((await this.claims.begin(1)) ? await next() : undefined);
      if (claim) await this.take(claim);
      return claim !== undefined;
    });
  }

  private async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      const found = await this.look();
      const restMs = Math.min(rest.mostMs, rest.eachMs * this.underWay.size);
      const restedAtMs = performance.now() + restMs;
      if (found === 0) await this.wakeUp.wait(Math.ceil(Math.max(0, this.pollAtMs - performance.now())));
      const leftMs = restedAtMs - performance.now();
      if (leftMs > 1) await delay(leftMs, undefined, { signal: this.stopping.signal }).catch(() => undefined);
    }
  }

  /** Begins the steps of due rows, and returns how many. */
  private async look(): Promise<number> {
    try {
      const found = this.beginAll(await this.poll()) + (await this.beginDue());
      // What is due goes first: only what is left of the room is for rows that wait in a state with a portion.
      const { free } = this.lanes;
      return found + (free > 0 && (await this.claims.begin(free)) ? await this.beginDue() : 0);
    } catch (error) {
      this.outages.log('warn', `Cannot claim due rows of ${this.machine.definition.id}; retrying`, error);
      return 0;
    }
  }

  /** Sweeps, makes postponed rows due, and claims rows past their deadline, when it is time for it. */
  private async poll(): Promise<Claim<Row>[]> {
    const nowMs = performance.now();
    if (nowMs < this.pollAtMs) return [];
    const sweeps = nowMs >= this.sweepAtMs;
    this.pollAtMs = this.sweepAtMs = sweeps ? nowMs + this.sweepMs : this.sweepAtMs;
    if (sweeps) await this.sweep();
    await this.claims.unpark();
    return this.overdue < maxOverdue ? this.claims.makeOverdue(maxOverdue - this.overdue, this.lanes) : [];
  }

  /** Touches the rows that a sweep finds. Returns whether there were any. */
  sweep(): Promise<boolean> {
    return this.inTurn(async () => this.claims.touch(await this.machine.sweep()));
  }

  /** Lanes count what has begun before more is claimed. */
  private async beginDue(): Promise<number> {
    const { free } = this.lanes;
    return free > 0 ? this.beginAll(await this.claims.make(free, this.lanes)) : 0;
  }

  private beginAll(claims: readonly Claim<Row>[]): number {
    for (const claim of claims) this.begin(claim);
    return claims.length;
  }

  private begin(claim: Claim<Row>): void {
    const work = this.take(claim).finally(() => {
      this.underWay.delete(work);
      this.wake();
    });
    this.underWay.add(work);
  }

  /** Runs the step of a claimed row, and of those that run together with it, and applies the results. Never throws. */
  private async take(claim: Claim<Row>): Promise<void> {
    if (this.isGivenUp(claim.row, claim.leftMs)) return this.giveUp(claim);
    const { lane } = claim.row;
    this.lanes.begin(lane);
    const claims = [this.keep(claim)];
    try {
      claims.push(...(await this.alike(claim)).map((other) => this.keep(other)));
      if (claims.length === 1 || !(await this.doTogether(claims))) await this.doEach(claims);
    } catch (error) {
      this.logFailure(claim.row, error);
    } finally {
      for (const { kept } of claims) this.keeper.drop(kept);
      this.lanes.end(lane);
    }
  }

  private async giveUp(claim: Claim<Row>): Promise<void> {
    this.overdue += 1;
    const held = this.keep(claim);
    try {
      await this.apply([{ ...held, found: deadlineExceeded(claim.row) }]);
    } catch (error) {
      this.logFailure(claim.row, error);
    } finally {
      this.keeper.drop(held.kept);
      this.overdue -= 1;
    }
  }

  private keep(claim: Claim<Row>): Held<Row> {
    return { claim, kept: this.keeper.keep(this.machine, claim), endsAtMs: performance.now() + claim.leftMs };
  }

  /** Claims more rows whose steps run together with this one's. Together they count as one step of their lane. */
  private async alike(claim: Claim<Row>): Promise<Claim<Row>[]> {
    const { state, attempts } = claim.row;
    if (attempts > 0 || !(this.machine.steppedTogether as readonly string[]).includes(state)) return [];
    return this.claims.makeAlike(claim, maxTogether - 1);
  }

  /** Returns false if nothing was written and the step of each row has to run by itself. */
  private async doTogether(all: readonly Held<Row>[]): Promise<boolean> {
    if (all.some((held) => this.isGivenUp(held.claim.row, leftMsOf(held)))) return false;
    const timeoutMs = Math.min(...all.map((held) => stepTimeoutMs(leftMsOf(held), this.stepMs)));
    const rows = all.map(({ claim }) => claim.row);
    const found = await runStep(this.machine, rows, this.limitsOf(all, timeoutMs), (context) =>
      this.machine.stepAll(rows, context),
    );
    // One row was moved meanwhile, or may be at fault: the others are not held up by it.
    const isCommon = Array.isArray(found) || isTimeout(found) || isCutShort(found);
    if (found === undefined ? !this.stopping.signal.aborted : !isCommon) return false;
    const results = all.map((each, at) => ({ ...each, found: Array.isArray(found) ? found[at] : found }));
    try {
      await this.apply(results);
    } catch (error) {
      if (isOutage(error)) throw error;
      return false;
    }
    this.noteAnswer(results, timeoutMs);
    return true;
  }

  private limitsOf(all: readonly Held<Row>[], timeoutMs: number): StepLimits {
    const { outages, lanes, stopping } = this;
    return { timeoutMs, stopping: stopping.signal, claims: all.map(({ kept }) => kept), outages, queues: lanes.queues };
  }

  /**
   * Runs the step of each row by itself. After a timeout or an outage the rows that are left are released as they are.
   */
  private async doEach(all: readonly Held<Row>[]): Promise<void> {
    for (const [at, each] of all.entries()) {
      const found = await this.doOne(each);
      if (isTimeout(found) || isCutShort(found))
        return this.apply(all.slice(at + 1).map((left) => ({ ...left, found: undefined })));
    }
  }

  private async doOne(held: Held<Row>): Promise<Found<Row, Event>> {
    const { row } = held.claim;
    // Others of its batch may have had their steps since it was claimed.
    const leftMs = leftMsOf(held);
    const timeoutMs = stepTimeoutMs(leftMs, this.stepMs);
    const isGivenUp = this.isGivenUp(row, leftMs);
    const found = isGivenUp
      ? deadlineExceeded(row)
      : await runStep(this.machine, [row], this.limitsOf([held], timeoutMs), (context) => this.step(row, context));
    if (!isGivenUp) this.noteAnswer([{ ...held, found }], timeoutMs);
    await this.apply([{ ...held, found }]).catch((error: unknown) => this.logFailure(row, error));
    return found;
  }

  /** In a final state nothing is to be done, whatever has made its row due. */
  private step(row: Row, context: StepContext): Promise<Outcome<Row, Event>> {
    const { isFinal = false } = this.machine.definition.states.get(row.state as State) ?? {};
    return isFinal ? Promise.resolve('rest') : this.machine.step(row, context);
  }

  /** Notes whether the lane of these rows hangs. */
  private noteAnswer(results: readonly Result<Row, Event>[], timeoutMs: number): void {
    const lane = results[0]?.claim.row.lane;
    if (lane === undefined) return;
    if (results.some(({ found }) => isAnswer(found))) this.lanes.answered(lane);
    // A timeout after next to no time says nothing about the lane.
    else if (results.some(({ found }) => isTimeout(found)) && timeoutMs >= Math.min(this.stepMs, 1_000))
      this.lanes.hung(lane);
  }

  /** At connections all that this worker does takes turns with what other machines do. */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    return inBackground(work, new QueueTime(this.machine.table));
  }

  /** The claim expires, and another worker runs the step again. */
  private logFailure({ state }: Row, error: unknown): void {
    this.outages.log(
      'error',
      `Cannot apply the result of a step of ${this.machine.definition.id} in ${state}; it will run again`,
      error,
    );
  }

  /** Whether the row is past its deadline and gets no late try. */
  private isGivenUp({ state, attempts, lane }: Row, leftMs: number): boolean {
    if (leftMs > 0) return false;
    const isTriedLate = this.machine.ruleOf(state)?.givesBack === true && attempts === 0;
    return !isTriedLate || this.lanes.hanging.includes(lane);
  }

  /** Applies results in one transaction, those whose claims still hold. */
  private async apply(results: readonly Result<Row, Event>[]): Promise<void> {
    if (results.length > 0) await inLine(this.lanes.queues, this.machine.table, () => this.write(results));
  }

  private async write(results: readonly Result<Row, Event>[]): Promise<void> {
    const claimed = results.map(({ claim }) => claim.row);
    const held = await this.transactions.run(async (manager) => {
      const rows = await this.claims.held(manager, claimed);
      const byKey = new Map(rows.map((each) => [this.machine.keyOf(each.row), each]));
      const findings = results.flatMap(({ claim, found }) => {
        const now = byKey.get(this.machine.keyOf(claim.row));
        return now
          ? [{ row: now.row, found, at: { isOverdue: now.isOverdue, wasTouched: wasTouched(claim.row, now.row) } }]
          : [];
      });
      await this.writer.writeAll(manager, findings);
      return byKey;
    });
    for (const { claim, kept } of results) {
      if (held.has(this.machine.keyOf(claim.row))) continue;
      if (await this.claims.endSuperseded(claim.row, kept.until)) this.wake();
    }
  }
}
