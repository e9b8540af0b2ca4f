import type { Hint } from '../observations.js';
import type { SecretKeeper } from './simulated-doors.js';
import { SimulatedListeners } from './simulated-listeners.js';
import { SimulatedChanges } from './simulated-changes.js';
import { SimulatedCluster } from './simulated-cluster.js';
import { SimulatedFaults } from './simulated-faults.js';
import { prepareStore, type SimulatedStore } from './simulated-store.js';

export interface SimulatedOptions {
  readonly store: SimulatedStore;
  /** Of the address on which doors listen: `127.0.0.1`. */
  readonly listenHost: string;
  /** For the keys of certificates in the database. */
  readonly secrets: SecretKeeper;
  /** Milliseconds for which an image is pulled. */
  readonly pullMs: number;
  /** Takes a sentence for the operator. */
  readonly warn?: (sentence: string) => void;
}

/**
 * The simulated clusters of an installation, as one process has them. Several processes on one database have the same.
 */
export class SimulatedWorld {
  readonly faults: SimulatedFaults;
  private readonly clusters = new Map<string, SimulatedCluster>();
  private readonly listeners: SimulatedListeners;
  private readonly changeFinder: SimulatedChanges;
  private prepared: Promise<void> | undefined;

  constructor(readonly options: SimulatedOptions) {
    const { store, listenHost, secrets, warn = () => undefined } = options;
    const ready = () => this.ready();
    this.listeners = new SimulatedListeners(store, listenHost, secrets, ready, () => this.changed(), warn);
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

  /** Listens, or stands by until whichever process listens is gone. */
  listen(): void {
    this.listeners.start();
  }

  async close(): Promise<void> {
    await Promise.all([...this.clusters.values()].map((cluster) => cluster.close()));
    await this.listeners.stop();
  }

  /** A door was requested or is to close. */
  ring(): void {
    this.listeners.wake();
  }

  /** A run was requested or is to end. */
  changed(): void {
    this.changeFinder.wake();
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
