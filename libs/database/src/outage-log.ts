import { messageOf } from '@atoll/errors';
import type { Logger } from '@nestjs/common';
import { isOutage } from './database-errors.js';

const everyMs = 60_000;

/** Tells of outages: once a minute, however much meets one, and however often. */
export class OutageLog {
  private quietUntilMs = 0;

  constructor(
    private readonly logger: Pick<Logger, 'warn' | 'error'>,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** Logs an outage as a warning, unless it was told of within the last minute, and any other error as `level` says. */
  log(level: 'warn' | 'error', sentence: string, error: unknown): void {
    if (isOutage(error)) this.tell(`${sentence}: ${messageOf(error)}`);
    else this.logger[level](`${sentence}: ${messageOf(error)}`);
  }

  /** Warns, unless it told of something within the last minute. */
  tell(sentence: string): void {
    if (this.nowMs() < this.quietUntilMs) return;
    this.quietUntilMs = this.nowMs() + everyMs;
    this.logger.warn(sentence);
  }
}
