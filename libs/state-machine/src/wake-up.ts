/** Wakes one loop. A ring before the wait ends the wait at once. */
export class WakeUp {
  private isRung = false;
  private answer: (() => void) | undefined;

  readonly ring = (): void => {
    this.isRung = true;
    this.answer?.();
  };

  /** Resolves at the next ring, or after `timeoutMs`. */
  async wait(timeoutMs: number): Promise<void> {
    if (!this.isRung) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.answer = resolve;
        timer = setTimeout(resolve, timeoutMs);
      });
      clearTimeout(timer);
      this.answer = undefined;
    }
    this.isRung = false;
  }
}
