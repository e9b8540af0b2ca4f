import { setTimeout as delay } from 'node:timers/promises';
import { ClusterError } from '../cluster-error.js';
import { tables, type SimulatedStore } from './simulated-store.js';

/**
 * Fault of a driver call: `hang` never ends, `slow` takes two seconds, `away` is a cluster that does not respond,
 * `refuse` one that refuses.
 */
export type SimulatedFault = 'hang' | 'slow' | 'away' | 'refuse';
/** A method of the driver, or all of them. */
export type SimulatedOperation = 'start' | 'stop' | 'observe' | 'door' | 'volume' | 'list' | 'check' | 'shell' | 'any';

const slowMs = 2_000;
const foreverMs = 2 ** 31 - 1;

/**
 * What goes wrong with calls to a simulated cluster: the test door. What goes wrong with a pod is chosen by its name,
 * see `scenarioOf`.
 */
export class SimulatedFaults {
  constructor(private readonly store: SimulatedStore) {}

  /** The next `times` calls of this kind to the cluster go wrong. */
  async inject(cluster: string, operation: SimulatedOperation, kind: SimulatedFault, times = 1): Promise<void> {
    await this.store.query(
      `INSERT INTO ${tables.fault} (cluster, operation, kind, times) VALUES ($1, $2, $3, $4)
       ON CONFLICT (cluster, operation) DO UPDATE SET kind = excluded.kind, times = excluded.times`,
      [cluster, operation, kind, times],
    );
  }

  /** Takes back what was injected. */
  async mend(cluster: string): Promise<void> {
    await this.store.query(`DELETE FROM ${tables.fault} WHERE cluster = $1`, [cluster]);
  }

  /** Lets the fault happen that was injected, if any. */
  async meet(cluster: string, operation: SimulatedOperation, signal: AbortSignal): Promise<void> {
    const [fault] = await this.store.query<{ kind: SimulatedFault }>(
      `UPDATE ${tables.fault} SET times = times - 1 WHERE cluster = $1 AND operation IN ($2, 'any') AND times > 0 RETURNING kind`,
      [cluster, operation],
    );
    if (!fault) return;
    if (fault.kind === 'away') throw new ClusterError('unreachable', 'The cluster does not answer.');
    if (fault.kind === 'refuse') throw new ClusterError('no_space', 'The cluster has no space left.');
    await delay(fault.kind === 'slow' ? slowMs : foreverMs, undefined, { signal, ref: false }).catch(() => {
      throw new ClusterError('timeout', 'The cluster did not answer in time.');
    });
  }
}
