/** Wakes the one loop that waits on it. A ring before the wait ends that wait at once. */
export class WakeUp {
  private isRung = false;
  private end: (() => void) | undefined;

  readonly ring = (): void => {
    this.isRung = true;
    this.end?.();
  };

  /** Resolves with true at the next ring, with false after `timeoutMs` without one. */
  async wait(timeoutMs: number): Promise<boolean> {
    if (!this.isRung) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.end = resolve;
        timer = setTimeout(resolve, timeoutMs);
      });
      clearTimeout(timer);
      this.end = undefined;
    }
    const isRung = this.isRung;
    this.isRung = false;
    return isRung;
  }
}
