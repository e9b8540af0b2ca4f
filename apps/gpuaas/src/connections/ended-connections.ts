import { Removals, Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { liveSubscription } from '../model/subscription.machine.js';
import { GpuaasSettings } from '../gpuaas-settings.js';

const batchSize = 1_000;

/** Replicas do not wait for each other: each skips the rows that another one has locked (`SKIP LOCKED`). */
const removal = `DELETE FROM connection WHERE subscription_id IN (
    SELECT subscription_id FROM connection JOIN subscription USING (subscription_id)
    WHERE NOT (${liveSubscription}) LIMIT $1 FOR UPDATE OF connection SKIP LOCKED
  ) RETURNING subscription_id`;

/** Removes the last known connections of subscriptions that have ended: no operation shows them. */
@Injectable()
export class EndedConnections extends Removals {
  constructor(
    private readonly statements: Statements,
    settings: GpuaasSettings,
  ) {
    super('connections of ended subscriptions', settings.workers.isIdle);
  }

  override async removeSome(): Promise<boolean> {
    const removed = await this.statements.query(removal, [batchSize]);
    return removed.length === batchSize;
  }
}
