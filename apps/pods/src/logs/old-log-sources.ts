import { Removals, Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';

const sliceSize = 1_000;

/**
 * However many sources there are, old or not, one statement reads a slice of them. Replicas do not wait for each other.
 */
const removal = `WITH slice AS MATERIALIZED (
    SELECT no FROM log_source WHERE no > $2 ORDER BY no LIMIT $3
  ), old AS (
    SELECT no FROM log_source source WHERE no IN (SELECT no FROM slice)
      AND changed_at < clock_timestamp() - make_interval(days => $1 + 1)
      AND EXISTS (SELECT FROM pod WHERE pod.pod_id = source.pod_id AND state = 'deleted')
      AND NOT EXISTS (SELECT FROM pod_run run WHERE run.pod_id = source.pod_id)
    FOR UPDATE SKIP LOCKED
  ), removed AS (
    DELETE FROM log_source WHERE no IN (SELECT no FROM old)
  )
  SELECT max(no) AS last FROM slice`;

/** Removes what was read of deleted pods whose last line is older than the retention. */
@Injectable()
export class OldLogSources extends Removals {
  private lookedUpTo = 0;

  constructor(
    private readonly statements: Statements,
    private readonly settings: PodsSettings,
  ) {
    super('log positions of deleted pods', settings.workers.isIdle);
  }

  /** Looks at the next slice. Resolves with whether there may be more; else the next look begins anew. */
  override async removeSome(): Promise<boolean> {
    const values = [this.settings.logRetentionDays, this.lookedUpTo, sliceSize];
    const [slice] = await this.statements.query<{ last: number | null }>(removal, values);
    this.lookedUpTo = slice?.last ?? 0;
    return this.lookedUpTo > 0;
  }
}
