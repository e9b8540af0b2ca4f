import { inBackground } from '@atoll/database';
import { Removals } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { messageOf } from '@atoll/errors';

const batchSize = 1_000;

/**
 * Ids grow with time, so that the oldest lines are the first in the primary key. Replicas do not wait for each other.
 */
const removal = `DELETE FROM machine_history WHERE id IN (
    SELECT id FROM (SELECT id, at FROM machine_history ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED) oldest
    WHERE at < clock_timestamp() - make_interval(days => $1)
  ) RETURNING id`;

/** Removes transitions that are older than so many days, a batch at a time. */
export class HistoryUpkeep {
  private readonly logger = new Logger('Machines');
  private readonly removals = new Removals(
    () => this.removeSome(),
    (error) => this.logger.warn(`Cannot remove old transitions; retrying: ${messageOf(error)}`),
  );

  constructor(
    private readonly dataSource: DataSource,
    private readonly days: number,
  ) {}

  start(): void {
    this.removals.start();
  }

  stop(): Promise<void> {
    return this.removals.stop();
  }

  /** Removes one batch. Resolves with whether there may be more. */
  async removeSome(): Promise<boolean> {
    const [rows] = await inBackground(() =>
      this.dataSource.query<[{ id: string }[], number]>(removal, [this.days, batchSize]),
    );
    return rows.length === batchSize;
  }
}
