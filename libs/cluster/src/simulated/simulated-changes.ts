import { Rounds } from '@atoll/waiting';
import type { Hint } from '../observations.js';
import { tables, type SimulatedStore } from './simulated-store.js';

/** Between two looks, unless the next change is known to come earlier: for what other processes do. */
const pollMs = 500;
/** What commits late is still seen. */
const overlapMs = 1_000;

interface Change {
  cluster: string;
  kind: Hint['kind'];
  id: string;
  run: number;
  /** null in the last row. */
  key: string | null;
  now: Date;
  /** In the last row: milliseconds until the next change of a run; null if none is known. */
  next_ms: number | null;
}

type Listener = (hint: Hint) => void;

/** Polls all simulated clusters for changes, once for all watchers, and not at all without watchers. */
export class SimulatedChanges {
  private readonly listeners = new Map<string, Set<Listener>>();
  private readonly rounds = new Rounds(() => this.look());
  private seen = new Set<string>();
  private since: Date | undefined;

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
    this.rounds.start();
  }

  /** Something has changed, or will at an instant that was not known. */
  wake(): void {
    this.rounds.wake();
  }

  private drop(cluster: string, listener: Listener): void {
    const of = this.listeners.get(cluster);
    of?.delete(listener);
    if (of?.size === 0) this.listeners.delete(cluster);
    if (this.listeners.size > 0) return;
    void this.rounds.stop();
    this.since = undefined;
  }

  /** Returns the milliseconds until the next look. */
  private async look(): Promise<number> {
    let nextMs = pollMs;
    try {
      const changes = await this.store.query<Change>(
        // Each instant in a subquery, so that the indexes are read from there.
        `WITH this_look AS MATERIALIZED (SELECT clock_timestamp()::timestamptz(3) AS now),
         clock AS MATERIALIZED (SELECT now, coalesce($1, now) - $2 * interval '1 millisecond' AS since FROM this_look)
         SELECT cluster, kind, id, run, 'ready ' || ready_at AS key, now, NULL::float8 AS next_ms FROM ${tables.run}, clock WHERE ready_at > (SELECT since FROM clock) AND ready_at <= (SELECT now FROM clock)
         UNION ALL
         SELECT cluster, kind, id, run, 'ends ' || ends_at, now, NULL FROM ${tables.run}, clock WHERE ends_at > (SELECT since FROM clock) AND ends_at <= (SELECT now FROM clock)
         UNION ALL
         SELECT cluster, 'door', id, run, 'changed ' || changed_at, now, NULL FROM ${tables.door}, clock WHERE changed_at > (SELECT since FROM clock)
         UNION ALL
         SELECT NULL, NULL, NULL, NULL, NULL, now, extract(epoch FROM LEAST(
           (SELECT min(ready_at) FROM ${tables.run} WHERE ready_at > (SELECT now FROM clock) AND ready_at < 'infinity'),
           (SELECT min(ends_at) FROM ${tables.run} WHERE ends_at > (SELECT now FROM clock))
         ) - now) * 1000 FROM clock`,
        [this.since ?? null, overlapMs],
      );
      const seen = new Set<string>();
      for (const { cluster, kind, id, run, key, now, next_ms } of changes) {
        if (key === null) {
          this.since = now;
          if (next_ms !== null) nextMs = Math.min(pollMs, Math.ceil(next_ms) + 1);
        } else {
          const name = `${cluster} ${kind} ${id} ${run} ${key}`;
          seen.add(name);
          if (!this.seen.has(name))
            for (const listener of this.listeners.get(cluster) ?? []) listener({ kind, id, run });
        }
      }
      this.seen = seen;
    } catch {
      // Hints may be lost; what they would have told is found by observing.
    }
    return nextMs;
  }
}
