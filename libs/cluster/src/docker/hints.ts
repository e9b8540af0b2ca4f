import type { ObjectRef } from '../objects.js';
import type { Hint } from '../observations.js';
import type { Engine } from './engine.js';
import type { EventAnswer } from './engine-answer.js';
import { jsonLines } from './json-lines.js';
import type { Names } from './names.js';

/** Hints of changes: the engine's events, and what this process does for the engine, such as a pull that ended. */
export class Hints {
  readonly #watchers = new Set<(hint: Hint) => void>();

  constructor(
    private readonly engine: Engine,
    private readonly names: Names,
  ) {}

  give(hint: ObjectRef): void {
    for (const watcher of this.#watchers) watcher(hint);
  }

  /**
   * A slow reader gets one hint for many of the same object, so that what waits for it is bounded by the number of
   * objects.
   */
  async *watch(signal: AbortSignal): AsyncGenerator<Hint> {
    const waiting = new Map<string, Hint>();
    let wake = (): void => undefined;
    let end: { readonly error: unknown } | null = null;
    const add = (hint: Hint): void => {
      waiting.set(this.names.of(hint), hint);
      wake();
    };
    this.#watchers.add(add);
    try {
      void this.#readEvents(add, signal).then(
        () => ((end = { error: new Error('The stream of events ended.') }), wake()),
        (error: unknown) => ((end = { error }), wake()),
      );
      for (;;) {
        for (const [key, hint] of waiting) {
          waiting.delete(key);
          yield hint;
        }
        if (end) throw (end as { error: unknown }).error;
        if (waiting.size === 0) await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      this.#watchers.delete(add);
    }
  }

  async #readEvents(add: (hint: Hint) => void, signal: AbortSignal): Promise<void> {
    const query = { filters: { ...this.names.filter(), type: ['container'] } };
    const body = await this.engine.stream({ method: 'GET', path: '/events', query, signal });
    for await (const { Actor } of jsonLines<EventAnswer>(body)) {
      const ref = this.names.refOf(Actor.Attributes);
      if (ref) add(ref);
    }
  }
}
