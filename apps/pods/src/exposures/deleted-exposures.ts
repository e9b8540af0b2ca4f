import { messageOf } from '@atoll/errors';
import { Statements } from '@atoll/database';
import { Removals } from '@atoll/waiting';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
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
export class DeletedExposures implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(DeletedExposures.name);
  private readonly removals = new Removals(
    () => this.removeSome(),
    (error) => this.logger.warn(`Cannot remove deleted exposed services; retrying: ${messageOf(error)}`),
  );

  constructor(
    private readonly statements: Statements,
    private readonly settings: PodsSettings,
  ) {}

  onApplicationBootstrap(): void {
    if (!this.settings.workers.isIdle) this.removals.start();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.removals.stop();
  }

  /** Removes one batch. Resolves with whether there may be more. */
  async removeSome(): Promise<boolean> {
    const removed = await this.statements.query(removal, [this.settings.historyRetentionDays, batchSize]);
    return removed.length === batchSize;
  }
}
