import { Removals, Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';

const batchSize = 1_000;

/** Replicas do not wait for each other. */
const removal = `DELETE FROM ssh_log_in WHERE log_in_id IN (
  SELECT log_in_id FROM ssh_log_in WHERE began_at < (SELECT clock_timestamp()) - make_interval(days => $1)
  ORDER BY began_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING log_in_id`;

/** Removes log-ins from the audit trail that began `ATOLL_LOG_IN_RETENTION` days ago. */
@Injectable()
export class OldLogIns extends Removals {
  constructor(
    private readonly statements: Statements,
    private readonly settings: PodsSettings,
  ) {
    super('old log-ins', settings.workers.isIdle);
  }

  override async removeSome(): Promise<boolean> {
    const removed = await this.statements.query(removal, [this.settings.logInRetentionDays, batchSize]);
    return removed.length === batchSize;
  }
}
