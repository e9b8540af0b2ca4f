import { Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { backOffMs, type BackOff } from '@atoll/waiting';
import type { Claims } from './claims.js';
import type { DurableMachine } from './durable-machine.js';
import type { MachineError, MachineRow } from './machine-row.js';
import type { Failure, Found } from './run-step.js';

const defaultBackOff: BackOff = { firstMs: 500, maxMs: 30_000 };

/** The pause before a step that an outage ended is run again. */
const afterOutageMs = 1_000;

/** What is found under the row lock when a result is applied. */
export interface Circumstances {
  readonly isOverdue: boolean;
  /** Whether the row was touched while its step ran. */
  readonly wasTouched: boolean;
}

/** A locked row whose claim holds, and the result of its step. */
export interface Finding<Row, Event extends string> {
  readonly row: Row;
  readonly found: Found<Row, Event>;
  readonly at: Circumstances;
}

/** Writes the results of steps to rows that the transaction has locked. */
export class OutcomeWriter<Row extends MachineRow, State extends string, Event extends string> {
  private readonly logger = new Logger('Machines');

  /** `dueIn` is called with the milliseconds after which a row is due again. */
  constructor(
    private readonly machine: DurableMachine<Row, State, Event>,
    private readonly claims: Claims<Row, State, Event>,
    private readonly actor: string,
    private readonly dueIn: (inMs: number) => void,
  ) {}

  /** Writes an event that has happened to several rows by one statement. */
  async writeAll(manager: EntityManager, findings: readonly Finding<Row, Event>[]): Promise<void> {
    const events = Map.groupBy(findings, ({ found }) => plainEventOf(found));
    for (const [event, those] of events) {
      if (event === undefined || those.length === 1) for (const each of those) await this.write(manager, each);
      else
        await this.moveAll(
          manager,
          those.map(({ row }) => row),
          event,
        );
    }
  }

  async write(manager: EntityManager, { row, found, at }: Finding<Row, Event>): Promise<void> {
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
      const said =
        reason === undefined
          ? this.recovered(row)
          : { lastError: reason && { ...reason, at: new Date().toISOString() } };
      return this.release(manager, row, { ...said, ...found.values }, at, found.againAfterMs);
    }
    if ('decide' in found) {
      await found.decide(manager, row);
      // A transition ends the claim. What is neither moved nor due at another time would have its step again at once.
      const [held] = await this.claims.held(manager, [row]);
      if (held && !wasTouched(row, held.row)) return this.rest(manager, row, at);
      return this.claims.release(manager, row, {}, 'as it is');
    }
    await this.moveAll(manager, [row], found.event, found.reason);
  }

  private async rest(manager: EntityManager, row: Row, { wasTouched }: Circumstances): Promise<void> {
    const { states } = this.machine.definition;
    if (!wasTouched && states.get(row.state as State)?.neverRests)
      throw new Error(`A row in ${row.state} cannot be left to rest.`);
    await this.claims.release(manager, row, this.recovered(row), wasTouched ? 'as it is' : 'not by itself');
  }

  /** A review that goes well ends the trouble of those before it. Transient states keep count of their failed tries. */
  private recovered(row: Row): Partial<MachineRow> {
    return row.attempts > 0 && !this.machine.ruleOf(row.state) ? { attempts: 0, lastError: null } : {};
  }

  private async goOn(manager: EntityManager, row: Row): Promise<void> {
    if (row.furtherLanes.length === 0) throw new Error(`${row.state} has no further lane.`);
    await this.claims.release(manager, row, {}, { inMs: 0 }, 'done');
  }

  private async release(
    manager: EntityManager,
    row: Row,
    values: Partial<MachineRow>,
    at: Circumstances,
    inMs: number,
  ): Promise<void> {
    await this.claims.release(manager, row, values, at.wasTouched ? 'as it is' : { inMs });
    if (!at.wasTouched) this.dueIn(inMs);
  }

  private async fail(manager: EntityManager, row: Row, failure: Failure, at: Circumstances): Promise<void> {
    const { code, message, isPermanent, isOutage = false } = failure;
    const rule = this.machine.ruleOf(row.state);
    if (isOutage && (!at.isOverdue || !rule || (rule.givesBack && row.attempts === 0))) {
      return this.release(manager, row, {}, at, afterOutageMs);
    }
    if (isOutage)
      this.logger.error(`A step of ${this.machine.definition.id} in ${row.state} failed for good: ${message}`);
    const attempts = row.attempts + 1;
    const isHopeless = isPermanent && !(rule?.givesBack && row.furtherLanes.length >= attempts);
    if (rule && (isHopeless || at.isOverdue || attempts >= (rule.tries ?? Infinity))) {
      return this.moveAll(manager, [row], rule.givesUpBy as Event, { code, message });
    }
    const lastError = { code, message, at: new Date().toISOString() };
    const inMs = backOffMs(rule?.backOff ?? defaultBackOff, attempts);
    await this.claims.release(manager, row, { attempts, lastError }, { inMs }, 'later');
    this.dueIn(inMs);
  }

  private async moveAll(
    manager: EntityManager,
    rows: readonly Row[],
    event: Event,
    error?: Omit<MachineError, 'at'>,
  ): Promise<void> {
    const free = { claimedUntil: null } as Partial<Row>;
    const moved = await this.machine.moveAll(manager, rows, event, { actor: this.actor }, free, error ?? null);
    if (moved.length < rows.length) throw new Error(`${event} is not a transition from ${rows[0]?.state}.`);
  }
}

/** The event of a result that has no reason of its own. */
function plainEventOf<Row, Event extends string>(found: Found<Row, Event>): Event | undefined {
  return typeof found === 'object' && 'event' in found && found.reason === undefined ? found.event : undefined;
}

/**
 * The failure of a row past its deadline, with its last error. An error kept from an earlier state may say so already.
 */
export function deadlineExceeded({ lastError }: MachineRow): Failure {
  const said = 'Deadline exceeded';
  const message = !lastError
    ? `${said}.`
    : lastError.message.startsWith(said)
      ? lastError.message
      : `${said}: ${lastError.message}`;
  return { code: lastError?.code ?? 'deadline_exceeded', message, isPermanent: true };
}

/** Whether a row was touched between its claim and its lock. */
export function wasTouched(claimed: MachineRow, held: MachineRow): boolean {
  return held.dueAt?.getTime() !== claimed.dueAt?.getTime();
}
