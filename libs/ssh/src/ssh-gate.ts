import { raced } from './dial.js';
import { sshError } from './ssh-error.js';

interface Waiting {
  readonly host: string;
  readonly enter: () => void;
}

/**
 * Bounds the connections of this process: so many at once, and one a host. Who waits is let in by order of arrival; a
 * host that is taken holds up nobody but those who wait for it.
 */
export class SshGate {
  readonly #taken = new Set<string>();
  #waiting: Waiting[] = [];

  /** `maxConnections`: at once, of all hosts; `waitMs`: milliseconds after which who waits gives up. */
  constructor(
    private readonly maxConnections: number,
    private readonly waitMs: number,
  ) {}

  /**
   * Runs the work when the host is free. Throws `crowded` where it waits too long or the signal is aborted; then the
   * work never begins.
   */
  async pass<T>(host: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#enter(host, signal);
    try {
      return await work();
    } finally {
      this.#taken.delete(host);
      this.#admit();
    }
  }

  async #enter(host: string, signal: AbortSignal): Promise<void> {
    let isIn = false;
    let one: Waiting | undefined;
    const entered = new Promise<void>((resolve) => {
      one = {
        host,
        enter: () => {
          isIn = true;
          resolve();
        },
      };
      this.#waiting.push(one);
    });
    this.#admit();
    try {
      await raced(entered, signal, this.waitMs);
    } catch (error) {
      this.#waiting = this.#waiting.filter((other) => other !== one);
      if (isIn) this.#taken.delete(host);
      this.#admit();
      throw sshError('crowded', error);
    }
  }

  #admit(): void {
    for (const one of [...this.#waiting]) {
      if (this.#taken.size >= this.maxConnections) return;
      if (this.#taken.has(one.host)) continue;
      this.#taken.add(one.host);
      this.#waiting = this.#waiting.filter((other) => other !== one);
      one.enter();
    }
  }
}
