import type { TerminalSize } from '../shell.js';

/** Signals of one shell that wait. */
const signalsAtMost = 8;

/** Resizes of one terminal: one is under way, and only the newest of those that came meanwhile follows. */
export class LatestSize {
  #wanted: TerminalSize | null = null;
  #applying: Promise<void> | null = null;

  constructor(private readonly apply: (size: TerminalSize) => Promise<void>) {}

  /** Resolves when the terminal has this size or a newer one; rejects where the newest could not be set. */
  set(size: TerminalSize): Promise<void> {
    this.#wanted = size;
    this.#applying ??= this.#applyAll();
    return this.#applying;
  }

  async #applyAll(): Promise<void> {
    try {
      while (this.#wanted) {
        const size = this.#wanted;
        this.#wanted = null;
        await this.apply(size).catch((error: unknown) => {
          // A newer one may succeed.
          if (!this.#wanted) throw error;
        });
      }
    } finally {
      // At once: a size that comes after the last look begins anew.
      this.#applying = null;
    }
  }
}

/**
 * Signals to one session, in order. As in a kernel (signal(7)), one that waits already is not queued again, and those
 * beyond some are dropped.
 */
export class PendingSignals {
  readonly #pending = new Map<string, Promise<void>>();
  #last: Promise<void> = Promise.resolve();

  constructor(private readonly send: (signal: string) => Promise<void>) {}

  /** Resolves when it has been sent. */
  async add(signal: string): Promise<void> {
    const known = this.#pending.get(signal);
    if (known || this.#pending.size >= signalsAtMost) return known;
    const sent = this.#last.then(() => {
      this.#pending.delete(signal);
      return this.send(signal);
    });
    this.#pending.set(signal, sent);
    this.#last = sent.catch(() => undefined);
    return sent;
  }
}
