import { untilAborted } from './abort.js';

/** Actions on one key run one after the other; those on different keys run at once. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Rejects with the signal's reason when it is aborted while others are at it; the action does not run then. */
  async run<T>(key: string, signal: AbortSignal, action: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(() => {
      signal.throwIfAborted();
      return action();
    });
    const settled = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, settled);
    void settled.then(() => this.#last.get(key) === settled && this.#last.delete(key));
    return untilAborted(signal, mine);
  }
}
