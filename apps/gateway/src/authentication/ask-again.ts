import { FairSemaphore, withPatience } from '@atoll/waiting';

const silent = Symbol('no answer yet');

/**
 * Asks once more what has had no answer for `silentMs`, as one of several replicas may be frozen. No more than `most`
 * such tries are under way at once: where all replicas are slow, they are not to be asked twice as much.
 */
export class AskAgain {
  readonly #silentMs: number;
  /** Refuses at once what is more. */
  readonly #tries: FairSemaphore;

  constructor({ silentMs, most }: { readonly silentMs: number; readonly most: number }) {
    this.#silentMs = silentMs;
    this.#tries = new FairSemaphore({ permits: most, maxWaiting: 0 });
  }

  /**
   * What `ask` resolves with, whichever of two calls of it resolves first. Throws what the first call throws where
   * neither resolves.
   */
  async run<T>(ask: () => Promise<T>): Promise<T> {
    const first = ask();
    const answer = await withPatience<T, typeof silent>(first, this.#silentMs, silent);
    return answer === silent ? Promise.any([first, this.#tries.run(ask)]).catch(() => first) : answer;
  }
}
