import { withPatience } from '@atoll/waiting';

const silent = Symbol('no answer yet');

/**
 * Asks once more what has had no answer for `silentMs`, as one of several replicas may be frozen. No more than `most`
 * such tries are under way at once: where all replicas are slow, they are not to be asked twice as much.
 */
export class AskAgain {
  private tries = 0;

  constructor(private readonly rules: { readonly silentMs: number; readonly most: number }) {}

  /**
   * What `ask` resolves with, whichever of two calls of it resolves first. Throws what the first call throws where
   * neither resolves.
   */
  async run<T>(ask: () => Promise<T>): Promise<T> {
    const { silentMs, most } = this.rules;
    const first = ask();
    const answer = await withPatience<T, typeof silent>(first, silentMs, silent);
    if (answer !== silent) return answer;
    return this.tries < most ? Promise.any([first, this.again(ask)]).catch(() => first) : first;
  }

  private async again<T>(ask: () => Promise<T>): Promise<T> {
    this.tries += 1;
    try {
      return await ask();
    } finally {
      this.tries -= 1;
    }
  }
}
