import { messageOf } from '@atoll/errors';
import type { CallContext } from '@atoll/contracts';
import { Transactions } from '@atoll/database';
import { Injectable, Logger, type BeforeApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { liveSubscription } from '../model/subscription.machine.js';
import { ConnectionSource } from './connection-source.js';

/** After this a refresh that nobody ended is over: its process has died. */
export const patienceMs = 30_000;
/** How long the source may take. */
const sourceMs = 10_000;

/**
 * Refreshes of connection information: at most one at a time of what a team has in a GPU service, whichever replica is
 * asked.
 */
@Injectable()
export class ConnectionRefresh implements BeforeApplicationShutdown {
  private readonly logger = new Logger(ConnectionRefresh.name);
  private readonly stopping = new AbortController();
  private readonly underWay = new Set<Promise<void>>();

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly source: ConnectionSource,
  ) {}

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort(new Error('the service is stopping'));
    await Promise.all(this.underWay);
  }

  /** What `begin` has returned to this call before, under its `Idempotency-Key`. */
  async kept(context: CallContext): Promise<Date | undefined> {
    const kept = await this.transactions.kept<{ startedAt: string }>(context);
    return kept && new Date(kept.startedAt);
  }

  /** Begins what is not under way already. Returns when the oldest began that the caller is part of. */
  async begin(teamId: string, gpuaasId: string | undefined, context: CallContext): Promise<Date> {
    let begun: { gpuaas_id: string; started_at: Date }[] = [];
    const { startedAt } = await this.transactions.once(context, async (manager) => {
      begun = await manager.query<{ gpuaas_id: string; started_at: Date }[]>(
        `INSERT INTO connection_refresh (team_id, gpuaas_id, started_at)
         SELECT $1::uuid, gpuaas_id, clock_timestamp() FROM (
           SELECT DISTINCT gpuaas_id FROM subscription JOIN pool USING (pool_id)
           WHERE team_id = $1 AND ($2::bigint IS NULL OR gpuaas_id = $2) AND subscription.${liveSubscription} ORDER BY gpuaas_id
         ) held
         ON CONFLICT (team_id, gpuaas_id) DO UPDATE SET started_at = excluded.started_at, ended_at = NULL
           WHERE connection_refresh.ended_at IS NOT NULL OR connection_refresh.started_at < clock_timestamp() - $3 * interval '1 millisecond'
         RETURNING gpuaas_id, started_at`,
        [teamId, gpuaasId ?? null, patienceMs],
      );
      const [{ started_at } = { started_at: null }] = await manager.query<{ started_at: Date | null }[]>(
        `SELECT coalesce(min(started_at), clock_timestamp()) AS started_at FROM connection_refresh
         WHERE team_id = $1 AND ($2::bigint IS NULL OR gpuaas_id = $2) AND ended_at IS NULL`,
        [teamId, gpuaasId ?? null],
      );
      return { startedAt: (started_at ?? new Date()).toISOString() };
    });
    for (const { gpuaas_id, started_at } of begun) this.track(this.run(teamId, gpuaas_id, started_at));
    return new Date(startedAt);
  }

  private track(work: Promise<void>): void {
    const tracked = work.finally(() => this.underWay.delete(tracked));
    this.underWay.add(tracked);
  }

  /** The last good values stay where it fails. */
  private async run(teamId: string, gpuaasId: string, startedAt: Date): Promise<void> {
    try {
      const ids = await this.subscriptionsOf(teamId, gpuaasId);
      const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(sourceMs)]);
      // Of one that begins as the service stops the source is not asked any more.
      signal.throwIfAborted();
      const pods = await this.source.read(teamId, ids, signal);
      await this.transactions.run(async (manager) => {
        const [, count] = await manager.query<[unknown, number]>(endQuery, [teamId, gpuaasId, startedAt, false]);
        // Another began meanwhile, since this one took too long: what that one finds is newer.
        if (count === 0) return;
        await manager.query(
          `INSERT INTO connection (subscription_id, pods, refreshed_at)
           SELECT id, pods, clock_timestamp() FROM unnest($1::bigint[], $2::jsonb[]) fresh (id, pods)
           ON CONFLICT (subscription_id) DO UPDATE SET pods = excluded.pods, refreshed_at = excluded.refreshed_at`,
          [ids, ids.map((id) => JSON.stringify(pods.get(id) ?? []))],
        );
      });
    } catch (error) {
      this.logger.warn(`Connections of GPU service ${gpuaasId} could not be refreshed: ${messageOf(error)}`);
      await this.dataSource.query(endQuery, [teamId, gpuaasId, startedAt, true]).catch(() => undefined);
    }
  }

  private async subscriptionsOf(teamId: string, gpuaasId: string): Promise<string[]> {
    const rows = await this.dataSource.query<{ subscription_id: string }[]>(
      `SELECT subscription_id FROM subscription JOIN pool USING (pool_id) WHERE team_id = $1 AND gpuaas_id = $2 AND subscription.${liveSubscription}`,
      [teamId, gpuaasId],
    );
    return rows.map(({ subscription_id }) => subscription_id);
  }
}

const endQuery = `UPDATE connection_refresh SET ended_at = clock_timestamp(), has_failed = $4 WHERE team_id = $1 AND gpuaas_id = $2 AND started_at = $3`;
