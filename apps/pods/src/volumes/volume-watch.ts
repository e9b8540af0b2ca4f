import type { VolumeSight } from '@atoll/cluster';
import { podUsageTold } from '@atoll/contracts/billing';
import { Transactions } from '@atoll/database';
import { UsageTeller } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { ClusterRounds } from '../cluster/cluster-rounds.js';
import { clustersOf } from '../cluster/clusters-of.js';
import { Clusters } from '../cluster/clusters.js';
import { PodsSettings } from '../pods-settings.js';
import { usageOf, VolumeSteps } from './volume-steps.js';

interface Seen {
  readonly id: string;
  readonly team_id: string;
  readonly used_bytes: string | null;
}

/** Keeps the used bytes of volumes, from time to time, and has a volume looked at that its cluster no longer has. */
@Injectable()
export class VolumeWatch extends ClusterRounds {
  constructor(
    dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly clusters: Clusters,
    private readonly steps: VolumeSteps,
    private readonly usage: UsageTeller,
    settings: PodsSettings,
  ) {
    super('the volumes', settings, dataSource);
  }

  protected override get everyMs(): number {
    return this.settings.volumeSweepMs;
  }

  protected override due(): Promise<string[]> {
    return this.clustersBy(clustersOf('shared_volume', `state = 'active'`));
  }

  /** Looks at all volumes of a cluster. */
  override async look(gpuaasId: string): Promise<void> {
    const driver = await this.clusters.driverOf(gpuaasId);
    await this.inPages(
      gpuaasId,
      '0',
      (after, limit) =>
        this.dataSource.query<Seen[]>(
          `SELECT volume_id AS id, team_id, used_bytes FROM shared_volume WHERE gpuaas_id = $1 AND state = 'active' AND volume_id > $2 ORDER BY volume_id LIMIT $3`,
          [gpuaasId, after, limit],
        ),
      async (rows, signal) => {
        const sights = await driver.observeVolumes(
          rows.map(({ id, team_id }) => ({ kind: 'volume', id, run: 0, teamId: team_id })),
          signal,
        );
        await this.keep(rows, sights);
      },
    );
  }

  private async keep(rows: readonly Seen[], sights: readonly VolumeSight[]): Promise<void> {
    const lost = rows.filter((_row, at) => sights[at]?.phase === 'absent').map(({ id }) => id);
    const changed = rows.flatMap(({ id, used_bytes }, at) => {
      const sight = sights[at];
      const usedBytes = sight?.phase === 'ready' ? sight.usedBytes : null;
      return usedBytes === null || String(usedBytes) === used_bytes ? [] : [{ volumeId: id, usedBytes }];
    });
    if (lost.length > 0) await this.transactions.run((manager) => this.steps.touch(manager, lost));
    if (changed.length > 0) await this.transactions.run((manager) => this.keepUsed(manager, changed));
  }

  /** Billing shows the figure, and is told it once an hour: it changes no cost. */
  private async keepUsed(
    manager: EntityManager,
    changed: readonly { volumeId: string; usedBytes: number }[],
  ): Promise<void> {
    const told = await manager.query<object[]>(
      `WITH found AS (
         SELECT volume_id, used, used_told_at AS told_before FROM unnest($1::bigint[], $2::bigint[]) given (volume_id, used) JOIN shared_volume USING (volume_id)
         WHERE state = 'active' ORDER BY volume_id FOR NO KEY UPDATE OF shared_volume
       ), kept AS (
         UPDATE shared_volume SET used_bytes = used,
           used_told_at = CASE WHEN used_told_at > clock_timestamp() - interval '1 hour' THEN used_told_at ELSE GREATEST(clock_timestamp(), entered_at) END
         FROM found WHERE found.volume_id = shared_volume.volume_id RETURNING shared_volume.*, told_before
       )
       SELECT * FROM kept WHERE used_told_at IS DISTINCT FROM told_before`,
      [changed.map(({ volumeId }) => volumeId), changed.map(({ usedBytes }) => usedBytes)],
    );
    const held = told.flatMap((raw) => {
      const volume = this.steps.rowOf(raw);
      const at = volume.usedToldAt;
      return at ? [{ ...usageOf(volume, volume.billedGb), at, mark: `used:${at.toISOString()}` }] : [];
    });
    await this.usage.tell(manager, podUsageTold, held);
  }
}
