import type { Hint } from '../observations.js';
import { SimulatedChanges } from './simulated-changes.js';
import { SimulatedCluster } from './simulated-cluster.js';
import { SimulatedFaults } from './simulated-faults.js';
import { prepareStore, type SimulatedStore } from './simulated-store.js';

export interface SimulatedOptions {
  readonly store: SimulatedStore;
  /** Of the address on which doors listen: `127.0.0.1`. */
  readonly listenHost: string;
  /** Milliseconds for which an image is pulled. */
  readonly pullMs: number;
}

/** The simulated clusters of an installation, as one process has them. Several processes on one database have the same. */
export class SimulatedWorld {
  readonly faults: SimulatedFaults;
  private readonly clusters = new Map<string, SimulatedCluster>();
  private readonly changeFinder: SimulatedChanges;
  private prepared: Promise<void> | undefined;

  constructor(readonly options: SimulatedOptions) {
    this.changeFinder = new SimulatedChanges(options.store);
    this.faults = new SimulatedFaults(options.store);
  }

  /** `id`: letters, digits and `-`; the same cluster in all processes. */
  cluster(id: string): SimulatedCluster {
    const known = this.clusters.get(id);
    if (known) return known;
    const cluster = new SimulatedCluster(this, id);
    this.clusters.set(id, cluster);
    return cluster;
  }

  /** Hints of what changes in one of them. */
  changes(id: string, signal: AbortSignal): AsyncGenerator<Hint> {
    return this.changeFinder.of(id, signal);
  }

  /** Once a process: the tables are there. Tried again by the next call where it failed. */
  async ready(): Promise<void> {
    this.prepared ??= prepareStore(this.options.store).catch((error: unknown) => {
      this.prepared = undefined;
      throw error;
    });
    await this.prepared;
  }
}
