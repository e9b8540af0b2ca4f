import { inBackground, OutageLog, Statements } from '@atoll/database';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { dueSql, type PolledTable } from './due-sql.js';

/**
 * Looks, by one statement for all machines of a process, for rows that a worker has something to do for, and tells the
 * workers of those machines. So machines at rest cost next to nothing, however many there are.
 */
export class DuePoll {
  private readonly outages = new OutageLog(new Logger('Machines'));
  private readonly statements: Statements;
  private readonly polled = new Map<PolledTable, () => void>();
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> | undefined;

  /** `pollMs`: milliseconds between two looks. Default 500. */
  constructor(
    dataSource: DataSource,
    private readonly pollMs = 500,
  ) {
    this.statements = new Statements(dataSource);
  }

  /**
   * Calls `onDue` whenever rows of the machine are due, parked until now, or past their deadline, and nobody works at
   * them.
   */
  add(machine: PolledTable, onDue: () => void): void {
    this.polled.set(machine, onDue);
    this.schedule();
  }

  /** After the last one, resolves once the look that is under way has ended. */
  async drop(machine: PolledTable): Promise<void> {
    this.polled.delete(machine);
    if (this.polled.size > 0) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.round;
  }

  private schedule(): void {
    this.timer ??= setTimeout(() => {
      this.round = inBackground(() => this.look()).then(() => {
        this.round = this.timer = undefined;
        if (this.polled.size > 0) this.schedule();
      });
    }, this.pollMs);
  }

  /**
   * Those of the machines with rows that are due, parked until now, or past their deadline, and that nobody works at.
   */
  async due<Of extends PolledTable>(machines: readonly Of[]): Promise<Of[]> {
    const { text, values } = dueSql(machines);
    const found = await this.statements.query<{ place: number }>(text, values);
    const due = new Set(found.map(({ place }) => place));
    return machines.filter((_, place) => due.has(place));
  }

  private async look(): Promise<void> {
    try {
      for (const machine of await this.due([...this.polled.keys()])) this.polled.get(machine)?.();
    } catch (error) {
      this.outages.log('warn', 'Cannot look for due rows; retrying', error);
    }
  }
}
