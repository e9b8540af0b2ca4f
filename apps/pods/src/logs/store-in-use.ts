import { ConnectionChanges, Statements, Transactions } from '@atoll/database';
import type { Provider } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';
import { LogStore } from './log-store.js';
import { LokiLogStore } from './loki-log-store.js';
import { PostgresLogStore } from './postgres-log-store.js';

/** Loki where an operator has one, the service's own database otherwise. */
export const logStore: Provider = {
  provide: LogStore,
  inject: [Statements, Transactions, ConnectionChanges, PodsSettings],
  useFactory: (
    statements: Statements,
    transactions: Transactions,
    connections: ConnectionChanges,
    { lokiUrl, logRetentionDays: retentionDays }: PodsSettings,
  ): LogStore =>
    lokiUrl === undefined
      ? new PostgresLogStore(statements, transactions, connections, { retentionDays })
      : new LokiLogStore(transactions, { url: lokiUrl, retentionDays }),
};
