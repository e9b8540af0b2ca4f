import { inBackground, Removals } from '@atoll/database';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';

const batchSize = 1_000;

/**
 * Ids grow with time, so that the oldest lines are the first in the primary key. Replicas do not wait for each other.
 */
const removal = `DELETE FROM machine_history WHERE id IN (
    SELECT id FROM (SELECT id, at FROM machine_history ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED) oldest
    WHERE at < clock_timestamp() - make_interval(days => $1)
  ) RETURNING id`;

/** Removes transitions that are older than so many days, a batch at a time. */
export class HistoryUpkeep extends Removals {
  protected override readonly logger = new Logger('Machines');

  constructor(
    private readonly dataSource: DataSource,
    private readonly days: number,
  ) {
    super('old transitions');
  }

  override async removeSome(): Promise<boolean> {
    const [rows] = await inBackground(() =>
      this.dataSource.query<[{ id: string }[], number]>(removal, [this.days, batchSize]),
    );
    return rows.length === batchSize;
  }
}
