import { Removals, Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { GpuaasSettings } from '../../gpuaas-settings.js';

const batchSize = 1_000;

/**
 * Ids grow with time, so that the oldest reads are the first in the primary key. Replicas do not wait for each other.
 */
const removal = `DELETE FROM baremetal_credential_read WHERE id IN (
    SELECT id FROM baremetal_credential_read WHERE id = ANY (ARRAY(
      SELECT id FROM (SELECT id, at FROM baremetal_credential_read ORDER BY id LIMIT $2) oldest
      WHERE at < clock_timestamp() - make_interval(days => $1)
    )) FOR UPDATE SKIP LOCKED
  ) RETURNING id`;

/** Removes who read the password of an instance `ATOLL_HISTORY_RETENTION` days ago, a batch at a time. */
@Injectable()
export class OldCredentialReads extends Removals {
  constructor(
    private readonly statements: Statements,
    private readonly settings: GpuaasSettings,
  ) {
    super('old reads of credentials', settings.workers.isIdle);
  }

  override async removeSome(): Promise<boolean> {
    const removed = await this.statements.query(removal, [this.settings.historyRetentionDays, batchSize]);
    return removed.length === batchSize;
  }
}
