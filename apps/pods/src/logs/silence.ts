import { unavailable } from './loki-client.js';

/**
 * Limits the requests that wait for a store that answers nobody. Each of them waits for all of its time, and other
 * calls of its team wait for their turn meanwhile. So one request of each team asks whether the store is back, and
 * others fail at once.
 */
export class Silence {
  #answers = 0;
  #isSilent = false;
  /** Teams of which a request asks whether the store is back. */
  readonly #asking = new Set<string>();

  /** The store has answered anybody anything. */
  readonly heard = (): void => {
    this.#answers += 1;
    this.#isSilent = false;
  };

  /** Throws what `read` throws, or AppError `unavailable` where it is not tried. */
  async run<Result>(teamId: string, read: () => Promise<Result>): Promise<Result> {
    const answers = this.#answers;
    const isAsking = this.#isSilent;
    if (isAsking && this.#asking.has(teamId)) throw unavailable(new Error('Loki answers nobody.'));
    if (isAsking) this.#asking.add(teamId);
    try {
      return await read();
    } catch (error) {
      if (this.#answers === answers) this.#isSilent = true;
      throw error;
    } finally {
      if (isAsking) this.#asking.delete(teamId);
    }
  }
}
