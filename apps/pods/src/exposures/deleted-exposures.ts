import { Removals, Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';

const batchSize = 1_000;

/** Replicas do not wait for each other. */
const removal = `DELETE FROM exposure WHERE service_id IN (
    SELECT service_id FROM exposure WHERE state = 'deleted' AND entered_at < (SELECT clock_timestamp()) - make_interval(days => $1)
      AND NOT EXISTS (SELECT FROM reserved_port WHERE reserved_port.service_id = exposure.service_id)
    ORDER BY entered_at LIMIT $2 FOR UPDATE SKIP LOCKED
  ) RETURNING service_id`;

/**
 * Removes exposed services that were deleted `ATOLL_HISTORY_RETENTION` days ago: no operation shows them. Pods, VMs and
 * volumes that were deleted stay, as listings show what has ended with `include_ended`.
 */
@Injectable()
export class DeletedExposures extends Removals {
  constructor(
    private readonly statements: Statements,
    private readonly settings: PodsSettings,
  ) {
    super('deleted exposed services', settings.workers.isIdle);
  }

  override async removeSome(): Promise<boolean> {
    const removed = await this.statements.query(removal, [this.settings.historyRetentionDays, batchSize]);
    return removed.length === batchSize;
  }
}
