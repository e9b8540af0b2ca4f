import { Statements } from '@atoll/database';
import { Rounds } from '@atoll/waiting';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';

const everyMs = 600_000;
/** Where there is more to remove: other statements have their turn between two batches. */
const moreMs = 100;
const batchSize = 1_000;

/** Replicas do not wait for each other. */
const removal = `DELETE FROM exposure WHERE service_id IN (
    SELECT service_id FROM exposure WHERE state = 'deleted' AND entered_at < clock_timestamp() - make_interval(days => $1)
      AND NOT EXISTS (SELECT FROM reserved_port WHERE reserved_port.service_id = exposure.service_id)
    ORDER BY entered_at LIMIT $2 FOR UPDATE SKIP LOCKED
  ) RETURNING service_id`;

/**
 * Removes exposed services that were deleted `ATOLL_HISTORY_RETENTION` days ago: no operation shows them. Pods, VMs and volumes that were deleted stay, as
 * listings show what has ended with `include_ended`.
 */
@Injectable()
export class DeletedExposures implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(DeletedExposures.name);
  private readonly rounds = new Rounds(() => this.look());

  constructor(
    private readonly statements: Statements,
    private readonly settings: PodsSettings,
  ) {}

  onApplicationBootstrap(): void {
    if (!this.settings.workers.isIdle) this.rounds.start(everyMs);
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.rounds.stop();
  }

  /** Removes one batch. Resolves with whether there may be more. */
  async removeSome(): Promise<boolean> {
    const removed = await this.statements.query('exposures.forget', removal, [this.settings.historyRetentionDays, batchSize]);
    return removed.length === batchSize;
  }

  private async look(): Promise<number> {
    try {
      return (await this.removeSome()) ? moreMs : everyMs;
    } catch (error) {
      this.logger.warn(`Cannot remove deleted exposed services; retrying: ${error instanceof Error ? error.message : String(error)}`);
      return everyMs;
    }
  }
}
