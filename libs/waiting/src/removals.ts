import { Rounds } from './rounds.js';

const everyMs = 600_000;
/** Where there is more to remove: other statements have their turn between two batches. */
const moreMs = 100;

/**
 * Removes what is old, a batch at a time: every ten minutes, and the next batch after a moment where there may be more.
 */
export class Removals {
  private readonly rounds = new Rounds(() => this.look());

  /** `removeSome` removes one batch and resolves with whether there may be more; `failed` is told what it throws. */
  constructor(
    private readonly removeSome: () => Promise<boolean>,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** The first look comes after ten minutes. */
  start(): void {
    this.rounds.start(everyMs);
  }

  /** Resolves once the batch that is under way has ended. */
  stop(): Promise<void> {
    return this.rounds.stop();
  }

  private async look(): Promise<number> {
    try {
      return (await this.removeSome()) ? moreMs : everyMs;
    } catch (error) {
      this.failed(error);
      return everyMs;
    }
  }
}
