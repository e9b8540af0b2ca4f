import { messageOf } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ClusterRounds } from '../cluster/cluster-rounds.js';
import { clustersOf } from '../cluster/clusters-of.js';
import { Clusters } from '../cluster/clusters.js';
import type { PodRunEntity } from '../model/pod-run.entity.js';
import { PodsSettings } from '../pods-settings.js';

const againMs = 30_000;
const removeMs = 8_000;
const perVisit = 100;
/** Removals on one cluster under way at once. */
const atOnce = 4;
/**
 * Runs that are claimed together, and for how long: another replica tries them no sooner. They take half of that where
 * the cluster hangs.
 */
const perClaim = 4;
const claimMs = 60_000;

/**
 * When a run is to be removed, in UTC, of those that have ended. The index `pod_run_removable` has it in these words.
 */
const removableAt = `coalesce(retry_at AT TIME ZONE 'UTC', ended_at AT TIME ZONE 'UTC' + CASE WHEN is_log_read THEN interval '0' ELSE interval '1 day' END)`;
const due = `ended_at IS NOT NULL AND ${removableAt} <= (SELECT clock_timestamp() AT TIME ZONE 'UTC')`;

/** The clusters with runs that are due: of each cluster that has ended ones, the run that is due first is read. */
const dueClusters = `${clustersOf('pod_run', 'ended_at IS NOT NULL')} WHERE (
    SELECT true FROM pod_run run WHERE run.gpuaas_id = cluster.gpuaas_id AND ${due} ORDER BY ${removableAt} LIMIT 1
  )`;

/** Those of a cluster that are due first, but for those that another replica is claiming. */
const claim = `WITH free AS (
    SELECT pod_id, run FROM pod_run WHERE gpuaas_id = $1 AND ${due} ORDER BY ${removableAt} LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE pod_run SET retry_at = clock_timestamp() + ${claimMs} * interval '1 millisecond' FROM free
  WHERE (pod_run.pod_id, pod_run.run) = (free.pod_id, free.run) RETURNING pod_run.pod_id, pod_run.run`;

type EndedRun = Pick<PodRunEntity, 'podId' | 'run'>;

/**
 * Removes runs that have ended from their clusters, once their log was read, or after a day. One that its cluster does
 * not remove holds up no other.
 */
@Injectable()
export class RunCollector extends ClusterRounds {
  protected override readonly everyMs = 2_000;

  constructor(
    dataSource: DataSource,
    private readonly clusters: Clusters,
    settings: PodsSettings,
  ) {
    super('ended runs', settings, dataSource);
  }

  protected override due(): Promise<string[]> {
    return this.clustersBy(dueClusters);
  }

  /** Removes what is due on one cluster, each run by itself. */
  override async look(gpuaasId: string): Promise<void> {
    const failures: string[] = [];
    let [tried, left] = [0, perVisit];
    const removeSome = async (): Promise<void> => {
      while (left > 0 && !this.stopping.signal.aborted) {
        const count = Math.min(perClaim, left);
        left -= count;
        const claimed = await this.claim(gpuaasId, count);
        if (claimed.length === 0) return;
        for (const ended of claimed) {
          if (this.stopping.signal.aborted) return;
          tried += 1;
          const failure = await this.tryToRemove(gpuaasId, ended);
          if (failure !== undefined) failures.push(failure);
        }
      }
    };
    const outcomes = await Promise.allSettled(Array.from({ length: atOnce }, removeSome));
    // One line for all: of a cluster that is gone there may be thousands.
    if (failures.length > 0 && !this.stopping.signal.aborted) {
      this.logger.warn(
        `Cannot remove ${failures.length} of ${tried} ended runs of GPU service ${gpuaasId}; retrying: ${failures[0]}`,
      );
    }
    const failed = outcomes.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined;
    if (failed) throw failed.reason;
  }

  private async claim(gpuaasId: string, count: number): Promise<EndedRun[]> {
    const [rows] = await this.dataSource.query<[{ pod_id: string; run: number }[], number]>(claim, [gpuaasId, count]);
    return rows.map(({ pod_id, run }) => ({ podId: pod_id, run }));
  }

  /** Resolves with what keeps it from being removed. */
  private async tryToRemove(gpuaasId: string, ended: EndedRun): Promise<string | undefined> {
    let failure: string | undefined;
    try {
      if (await this.isRemoved(gpuaasId, ended)) {
        await this.dataSource.query('DELETE FROM pod_run WHERE pod_id = $1 AND run = $2', [ended.podId, ended.run]);
        return undefined;
      }
    } catch (error) {
      failure = messageOf(error);
    }
    await this.dataSource
      .query(
        `UPDATE pod_run SET retry_at = clock_timestamp() + ${againMs} * interval '1 millisecond' WHERE pod_id = $1 AND run = $2`,
        [ended.podId, ended.run],
      )
      .catch((error: unknown) => (failure ??= messageOf(error)));
    return failure;
  }

  private async isRemoved(gpuaasId: string, { podId, run }: EndedRun): Promise<boolean> {
    const driver = await this.clusters.driverOf(gpuaasId);
    const ref = { kind: 'pod', id: podId, run } as const;
    const signal = this.within(removeMs);
    await driver.remove(ref, signal);
    const [sight] = await driver.observePods([ref], signal);
    return sight?.phase === 'absent';
  }
}
