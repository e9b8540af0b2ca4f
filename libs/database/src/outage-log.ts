import { messageOf, rootOf } from '@atoll/errors';
import { ThrottledLog } from '@atoll/waiting';
import type { Logger } from '@nestjs/common';
import { isOutage } from './database-errors.js';

/** Tells of outages: once a minute, however much meets one, and however often. */
export class OutageLog {
  private readonly outages: ThrottledLog;

  constructor(private readonly logger: Pick<Logger, 'warn' | 'error'>) {
    this.outages = new ThrottledLog(({ message }) => logger.warn(message));
  }

  /** Logs an outage as a warning, unless it was told of within the last minute, and any other error as `level` says. */
  log(level: 'warn' | 'error', sentence: string, error: unknown): void {
    const message = `${sentence}: ${messageOf(rootOf(error))}`;
    if (isOutage(error)) this.outages.log('outage', { message });
    else this.logger[level](message);
  }
}
