/** Wakes the one loop that waits on it. A signal before the wait ends that wait at once. */
export class WakeUp {
  #signalled = false;
  #resolve: (() => void) | undefined;

  signal(): void {
    this.#signalled = true;
    this.#resolve?.();
  }

  /** Resolves with true on the next signal, with false after `timeoutMs` without one. */
  async wait(timeoutMs: number): Promise<boolean> {
    if (!this.#signalled) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
        timer = setTimeout(resolve, timeoutMs);
      });
      clearTimeout(timer);
      this.#resolve = undefined;
    }
    const signalled = this.#signalled;
    this.#signalled = false;
    return signalled;
  }
}
