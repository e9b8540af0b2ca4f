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
/** Ends on one cluster under way at once. */
const atOnce = 4;
/** Ends that are claimed together: few, so that one that is owed meanwhile has its turn soon. */
const perClaim = 16;
/** Longer than those take where the cluster hangs: another replica tries them no sooner. */
const claimMs = 150_000;
/** No more are claimed afterwards, so that the log has a line meanwhile, as of a cluster that hangs. */
const visitMs = 60_000;

/**
 * Teams take turns, whatever the number of ends that each is owed, and so do ends that need the cluster and those that only end a workload: which of them is first is
 * left to chance, so that none is always last. Of one team the oldest goes first.
 */
const claim = `WITH turns AS (
    SELECT given.kind, given.id, given.run, given.start,
      row_number() OVER (PARTITION BY coalesce(pod.team_id, vm.team_id), given.run > 0 ORDER BY try_at) AS turn
    FROM given_up_end given
      LEFT JOIN pod ON given.kind = 'pod' AND pod.pod_id = given.id
      LEFT JOIN vm ON given.kind = 'vm' AND vm.instance_id = given.id
    WHERE given.gpuaas_id = $1 AND try_at <= clock_timestamp()
  ), next AS (
    SELECT kind, id, run, start, turn FROM turns ORDER BY turn, random() LIMIT ${perClaim}
  ), free AS (
    SELECT kind, id, run, start, turn FROM given_up_end given JOIN next USING (kind, id, run, start)
    WHERE try_at <= clock_timestamp() FOR UPDATE OF given SKIP LOCKED
  ), claimed AS (
    UPDATE given_up_end given SET try_at = clock_timestamp() + ${claimMs} * interval '1 millisecond' FROM free
    WHERE (given.kind, given.id, given.run, given.start) = (free.kind, free.id, free.run, free.start)
    RETURNING given.kind, given.id, given.run, given.start, turn
  )
  SELECT kind, id, run, start FROM claimed ORDER BY turn`;

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

  /** Tries all that is due on one cluster, some at once and each by itself: one that does not end holds up no other. */
  async look(gpuaasId: string): Promise<void> {
    const failures: string[] = [];
    const fail = (error: unknown): void => void failures.push(error instanceof Error ? error.message : String(error));
    const untilMs = performance.now() + visitMs;
    const left: GivenUpEnd[] = [];
    let [tried, hasAll] = [0, false];
    let claiming: Promise<void> | undefined;
    const claimMore = async (): Promise<void> => {
      hasAll = true;
      const claimed = await this.dataSource.query<GivenUpEnd[]>(claim, [gpuaasId]);
      left.push(...claimed);
      // Fewer than asked for are not the last: another replica may have claimed some of the first.
      hasAll = claimed.length === 0 || performance.now() > untilMs;
    };
    const trySome = async (): Promise<void> => {
      while (!this.stopping.signal.aborted) {
        if (left.length === 0 && !hasAll) claiming = claimMore().catch(fail);
        await claiming;
        const end = left.shift();
        if (!end) return;
        tried += 1;
        await this.settle(gpuaasId, end).catch(fail);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, trySome));
    // One line for all: of a cluster that is gone there may be thousands.
    if (failures.length > 0 && !this.stopping.signal.aborted) {
      this.logger.warn(
        `Cannot end ${failures.length} of ${tried} runs of GPU service ${gpuaasId} that were given up; retrying: ${failures[0]}`,
      );
    }
  }

  /** Tries one that is claimed, and writes down what came of it. Throws what keeps it from its end. */
  private async settle(gpuaasId: string, end: GivenUpEnd): Promise<void> {
    const values = [end.kind, end.id, end.run, end.start];
    let isOver = false;
    try {
      isOver = await this.tryToEnd(gpuaasId, end);
    } finally {
      await (isOver
        ? this.dataSource.query('DELETE FROM given_up_end WHERE (kind, id, run, start) = ($1, $2, $3, $4)', values)
        : this.dataSource.query(
            `UPDATE given_up_end SET try_at = clock_timestamp() + ${againMs} * interval '1 millisecond' WHERE (kind, id, run, start) = ($1, $2, $3, $4)`,
            values,
          ));
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
