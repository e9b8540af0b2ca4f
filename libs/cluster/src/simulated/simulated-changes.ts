import type { Hint } from '../observations.js';
import { tables, type SimulatedStore } from './simulated-store.js';

const pollMs = 100;
/** What commits late is still seen. */
const overlapMs = 1_000;

interface Change {
  cluster: string;
  kind: Hint['kind'];
  id: string;
  run: number;
  key: string;
  now: Date;
}

type Listener = (hint: Hint) => void;

/** Looks for what has changed in all simulated clusters, once for all who watch. Nothing is looked at while nobody does. */
export class SimulatedChanges {
  private readonly listeners = new Map<string, Set<Listener>>();
  private timer: NodeJS.Timeout | undefined;
  private seen = new Set<string>();
  private since: Date | undefined;
  private isLooking = false;

  constructor(private readonly store: SimulatedStore) {}

  async *of(cluster: string, signal: AbortSignal): AsyncGenerator<Hint> {
    const waiting: Hint[] = [];
    let wake: () => void = () => undefined;
    const listener: Listener = (hint) => {
      waiting.push(hint);
      wake();
    };
    this.add(cluster, listener);
    const onAbort = () => wake();
    signal.addEventListener('abort', onAbort);
    try {
      while (!signal.aborted) {
        yield* waiting.splice(0);
        if (waiting.length === 0 && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.drop(cluster, listener);
    }
  }

  private add(cluster: string, listener: Listener): void {
    const of = this.listeners.get(cluster) ?? new Set();
    this.listeners.set(cluster, of.add(listener));
    this.timer ??= setInterval(() => void this.look(), pollMs).unref();
  }

  private drop(cluster: string, listener: Listener): void {
    const of = this.listeners.get(cluster);
    of?.delete(listener);
    if (of?.size === 0) this.listeners.delete(cluster);
    if (this.listeners.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
    this.since = undefined;
  }

  private async look(): Promise<void> {
    if (this.isLooking) return;
    this.isLooking = true;
    try {
      const changes = await this.store.query<Change>(
        `WITH clock AS MATERIALIZED (SELECT clock_timestamp()::timestamptz(3) AS now)
         SELECT cluster, kind, id, run, 'ready ' || ready_at AS key, now FROM ${tables.run}, clock WHERE ready_at > coalesce($1, now) - $2 * interval '1 millisecond' AND ready_at <= now
         UNION ALL
         SELECT cluster, kind, id, run, 'ends ' || ends_at, now FROM ${tables.run}, clock WHERE ends_at > coalesce($1, now) - $2 * interval '1 millisecond' AND ends_at <= now
         UNION ALL
         SELECT cluster, 'door', id, run, 'changed ' || changed_at, now FROM ${tables.door}, clock WHERE changed_at > coalesce($1, now) - $2 * interval '1 millisecond'
         UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, now FROM clock`,
        [this.since ?? null, overlapMs],
      );
      const seen = new Set<string>();
      for (const { cluster, kind, id, run, key, now } of changes) {
        if (key === null) this.since = now;
        else {
          const name = `${cluster} ${kind} ${id} ${run} ${key}`;
          seen.add(name);
          if (!this.seen.has(name)) for (const listener of this.listeners.get(cluster) ?? []) listener({ kind, id, run });
        }
      }
      this.seen = seen;
    } catch {
      // Hints may be lost; what they would have told is found by observing.
    } finally {
      this.isLooking = false;
    }
  }
}
