import { afterCommit } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';

/** Rings for the workers of this process that something may be due in a table. A hint: whoever misses it finds out by polling. */
class Bell {
  readonly listeners = new Set<() => void>();
  /** One function for the bell's whole life, so that a transaction that rings it often rings it once. */
  readonly ring = (): void => this.listeners.forEach((listener) => listener());
}

const bells = new WeakMap<DataSource, Map<string, Bell>>();

export function bellOf(dataSource: DataSource, table: string): Bell {
  const ofSource = bells.get(dataSource) ?? new Map<string, Bell>();
  bells.set(dataSource, ofSource);
  const bell = ofSource.get(table) ?? new Bell();
  ofSource.set(table, bell);
  return bell;
}

export function ringAfterCommit(manager: EntityManager, table: string): void {
  afterCommit(manager, bellOf(manager.connection, table).ring);
}
