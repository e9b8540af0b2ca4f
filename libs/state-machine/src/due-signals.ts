import { afterCommit } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';

/** Tells the workers of this process that rows of a table may be due. Only a hint: workers also poll. */
class DueSignal {
  readonly listeners = new Set<() => void>();
  /** The same function each time, so that a transaction registers it only once. */
  readonly emit = (): void => this.listeners.forEach((listener) => listener());
}

const signals = new WeakMap<DataSource, Map<string, DueSignal>>();

export function dueSignalOf(dataSource: DataSource, table: string): DueSignal {
  const ofSource = signals.get(dataSource) ?? new Map<string, DueSignal>();
  signals.set(dataSource, ofSource);
  const signal = ofSource.get(table) ?? new DueSignal();
  ofSource.set(table, signal);
  return signal;
}

export function signalAfterCommit(manager: EntityManager, table: string): void {
  afterCommit(manager, dueSignalOf(manager.connection, table).emit);
}
