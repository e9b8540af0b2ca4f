/**
 * Looks again and again, one look at a time: as long after the end of the look before as that one said, so that none
 * wait behind a slow one; and at once where somebody asks. What is asked for during a look is looked at after it, once
 * for all who asked.
 */
export class Rounds {
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> | undefined;
  private isOn = false;
  private isAskedAgain = false;

  /** `look` never throws; it resolves with the milliseconds until the next look. */
  constructor(private readonly look: () => Promise<number>) {}

  /** The first look is at once, or after `inMs`. */
  start(inMs = 0): void {
    this.isOn = true;
    if (inMs === 0) this.wake();
    else this.timer = setTimeout(() => this.wake(), inMs).unref();
  }

  wake(): void {
    if (!this.isOn) return;
    if (this.round) {
      this.isAskedAgain = true;
      return;
    }
    clearTimeout(this.timer);
    this.round = this.look().then((nextMs) => {
      this.round = undefined;
      if (this.isOn) this.timer = setTimeout(() => this.wake(), this.isAskedAgain ? 0 : nextMs).unref();
      this.isAskedAgain = false;
    });
  }

  /** Resolves once the look that is under way has ended. */
  async stop(): Promise<void> {
    this.isOn = false;
    clearTimeout(this.timer);
    await this.round;
  }
}
