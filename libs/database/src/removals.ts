import { messageOf } from '@atoll/errors';
import { Rounds } from '@atoll/waiting';
import { Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';

/** Where there is more to remove: other statements have their turn between two batches. */
const moreMs = 100;

/**
 * Removes what is old, a batch at a time: every ten minutes, or every `everyMs`, for the first time so long after the
 * start, and the next batch after a moment where there may be more.
 */
export abstract class Removals implements OnApplicationBootstrap, BeforeApplicationShutdown {
  protected readonly logger = new Logger(this.constructor.name);
  private readonly rounds = new Rounds(() => this.look());

  /** `what` is removed, for the log: `old sessions`. With `isIdle` nothing is removed by itself, for specs. */
  protected constructor(
    private readonly what: string,
    private readonly isIdle = false,
    private readonly everyMs = 600_000,
  ) {}

  /** Removes one batch. Resolves with whether there may be more. */
  abstract removeSome(): Promise<boolean>;

  onApplicationBootstrap(): void {
    if (!this.isIdle) this.rounds.start(this.everyMs);
  }

  /** Resolves once the batch that is under way has ended. */
  beforeApplicationShutdown(): Promise<void> {
    return this.rounds.stop();
  }

  protected warn(error: unknown): void {
    this.logger.warn(`Cannot remove ${this.what}; retrying: ${messageOf(error)}`);
  }

  private async look(): Promise<number> {
    try {
      return (await this.removeSome()) ? moreMs : this.everyMs;
    } catch (error) {
      this.warn(error);
      return this.everyMs;
    }
  }
}
