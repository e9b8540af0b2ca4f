/** A bell that one loop waits for: rung before the wait begins, the wait is over at once. */
export class WakeUp {
  #rung = false;
  #answer: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#answer?.();
  }

  /** Resolves with true at the next ring, with false when the time is over without one. */
  async wait(timeoutMs: number): Promise<boolean> {
    if (!this.#rung) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#answer = resolve;
        timer = setTimeout(resolve, timeoutMs);
      });
      clearTimeout(timer);
      this.#answer = undefined;
    }
    const rung = this.#rung;
    this.#rung = false;
    return rung;
  }
}
