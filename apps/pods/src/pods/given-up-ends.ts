import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { ClusterRounds } from '../cluster/cluster-rounds.js';
import { Clusters } from '../cluster/clusters.js';
import type { GivenUpEndEntity } from '../model/given-up-end.entity.js';
import { PodsSettings } from '../pods-settings.js';
import { PodStarts } from './pod-start.js';

const everyMs = 5_000;
const againMs = 30_000;
const stopMs = 8_000;
const graceMs = 10_000;
const perVisit = 100;

type GivenUpEnd = Pick<GivenUpEndEntity, 'id' | 'run' | 'start'> & { kind: 'pod' | 'vm' };

/** Within the transaction in which a row gives up its end: the end is still owed to the cluster and to gpuaas. */
export async function owe(manager: EntityManager, gpuaasId: string, { kind, id, run, start }: GivenUpEnd): Promise<void> {
  await manager.query('INSERT INTO given_up_end (kind, id, run, start, gpuaas_id) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING', [
    kind,
    id,
    run,
    start,
    gpuaasId,
  ]);
}

/**
 * Ends what pods and VMs gave up to end, as while their cluster or gpuaas was away for longer than their deadline: the run first, then its workload, so
 * that no slice is given on while something still uses it. What of it is left on the cluster is removed like the rest of every run.
 */
@Injectable()
export class GivenUpEnds extends ClusterRounds {
  constructor(
    private readonly dataSource: DataSource,
    private readonly clusters: Clusters,
    private readonly starts: PodStarts,
    settings: PodsSettings,
  ) {
    super('ends that were given up', settings);
  }

  protected override get everyMs(): number {
    return everyMs;
  }

  protected override async due(): Promise<string[]> {
    const rows = await this.dataSource.query<{ gpuaas_id: string }[]>(
      'SELECT DISTINCT gpuaas_id FROM given_up_end WHERE try_at <= clock_timestamp()',
    );
    return rows.map(({ gpuaas_id }) => gpuaas_id);
  }

  protected override visit(gpuaasId: string): Promise<void> {
    return this.look(gpuaasId);
  }

  /** Tries all that is due on one cluster, each by itself: one that does not end holds up no other. */
  async look(gpuaasId: string): Promise<void> {
    const owed = await this.dataSource.query<GivenUpEnd[]>(
      `SELECT kind, id, run, start FROM given_up_end WHERE gpuaas_id = $1 AND try_at <= clock_timestamp() ORDER BY try_at LIMIT ${perVisit}`,
      [gpuaasId],
    );
    const failures: string[] = [];
    for (const end of owed) {
      if (this.stopping.signal.aborted) return;
      const values = [end.kind, end.id, end.run, end.start];
      const isOver = await this.tryToEnd(gpuaasId, end).catch((error: unknown) => {
        failures.push(error instanceof Error ? error.message : String(error));
        return false;
      });
      if (isOver) {
        await this.dataSource.query('DELETE FROM given_up_end WHERE (kind, id, run, start) = ($1, $2, $3, $4)', values);
      } else {
        await this.dataSource.query(
          `UPDATE given_up_end SET try_at = clock_timestamp() + ${againMs} * interval '1 millisecond' WHERE (kind, id, run, start) = ($1, $2, $3, $4)`,
          values,
        );
      }
    }
    // One line for all: of a cluster that is gone there may be thousands.
    if (failures.length > 0 && !this.stopping.signal.aborted) {
      this.logger.warn(
        `Cannot end ${failures.length} of ${owed.length} runs of GPU service ${gpuaasId} that were given up; retrying: ${failures[0]}`,
      );
    }
  }

  /** Whether it has ended. Throws what keeps it from that. */
  private async tryToEnd(gpuaasId: string, end: GivenUpEnd): Promise<boolean> {
    if (end.run > 0 && !(await this.hasStopped(gpuaasId, end))) return false;
    if (end.kind === 'pod') await this.starts.endWorkload({ podId: end.id, start: end.start, requestId: null });
    return true;
  }

  private async hasStopped(gpuaasId: string, { kind, id, run }: GivenUpEnd): Promise<boolean> {
    const driver = await this.clusters.driverOf(gpuaasId);
    const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(graceMs + stopMs)]);
    const ref = { kind, id, run };
    await (kind === 'pod' ? driver.stopPod(ref, graceMs, signal) : driver.stopVm(ref, graceMs, signal));
    const [sight] = await (kind === 'pod' ? driver.observePods([ref], signal) : driver.observeVms([ref], signal));
    return sight?.phase === 'ended' || sight?.phase === 'absent';
  }
}
