import { spreadMs, withPatience } from '@atoll/waiting';

/** What was on its way when the container was looked for has come after so long. */
const lastMs = 500;

/** The log of a container that writes no more: it is gone, or has ended. */
export class SilentForGood extends Error {}

/**
 * Waits for what a log gives next. Podman neither answers nor ends the log of a container that was removed by force, so
 * that after each period of silence the container is looked for.
 */
export class LogSilence {
  #lookAtMs = 0;

  /** `canWrite`: whether the container is there and has not ended. `periodMs` is spread by chance. */
  constructor(
    private readonly periodMs: number,
    private readonly canWrite: () => Promise<boolean>,
  ) {
    this.#restart();
  }

  /**
   * The outcome of `work`, or null where it is not there within `patienceMs`. Throws `SilentForGood` where nothing can
   * come any more, and what `canWrite` throws.
   */
  readonly wait = async <T>(work: Promise<T>, patienceMs: number): Promise<T | null> => {
    const untilMs = performance.now() + patienceMs;
    for (;;) {
      const leftMs = Math.max(0, Math.min(untilMs, this.#lookAtMs) - performance.now());
      const outcome = await withPatience(work, leftMs, null);
      if (outcome !== null) return (this.#restart(), outcome);
      if (this.#lookAtMs > untilMs) return null;
      if (!(await this.canWrite())) return this.#last(work);
      this.#restart();
    }
  };

  async #last<T>(work: Promise<T>): Promise<T> {
    const outcome = await withPatience(work, lastMs, null);
    if (outcome === null) throw new SilentForGood();
    return outcome;
  }

  #restart(): void {
    this.#lookAtMs = performance.now() + spreadMs(this.periodMs);
  }
}
