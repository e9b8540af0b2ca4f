import { afterCommit } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';

/** Tells the workers of this process that rows of a table may be due. Only a hint: workers also poll. */
class Bell {
  readonly listeners = new Set<() => void>();
  /** The same function each time, so that a transaction registers it only once. */
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
