import { nilId } from '@atoll/database';
import { messageOf } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ClusterRounds } from '../cluster/cluster-rounds.js';
import { clustersOf } from '../cluster/clusters-of.js';
import { Clusters } from '../cluster/clusters.js';
import { stopRun, type OutstandingEnd } from '../cluster/runs.js';
import { PodEntity } from '../model/pod.entity.js';
import { VmEntity } from '../model/vm.entity.js';
import { PodsSettings } from '../pods-settings.js';
import { LateEnds } from '../usage/late-ends.js';
import { PodStarts } from './pod-start.js';

const againMs = 30_000;
const stopMs = 8_000;
const graceMs = 10_000;
/** Ends on one cluster under way at once. */
const atOnce = 4;
/** Ends that are claimed together: few, so that one that is given up meanwhile has its turn soon. */
const perClaim = 16;
/** Teams whose ends are looked at for that. */
const teamsPerClaim = 16;
/** Longer than those take where the cluster hangs: another replica tries them no sooner. */
const claimMs = 150_000;
/** No more are claimed afterwards, so that the log has a line meanwhile, as of a cluster that hangs. */
const visitMs = 60_000;

/** The clusters with outstanding ends that are due: of each, the end that is due first is read. */
const dueClusters = `${clustersOf('given_up_end', 'true')} WHERE (
    SELECT true FROM given_up_end given WHERE given.gpuaas_id = cluster.gpuaas_id AND try_at <= (SELECT clock_timestamp()) ORDER BY try_at LIMIT 1
  )`;

/**
 * The next teams in turn with outstanding ends on a cluster, due or not: a few steps along an index, however many
 * there are.
 */
const nextTeams = `WITH RECURSIVE team AS (
    (SELECT team_id, 1 AS place FROM given_up_end WHERE gpuaas_id = $1 AND team_id > $2 ORDER BY team_id LIMIT 1)
    UNION ALL
    SELECT next.team_id, place + 1 FROM team CROSS JOIN LATERAL (
      SELECT given.team_id FROM given_up_end given WHERE given.gpuaas_id = $1 AND given.team_id > team.team_id ORDER BY given.team_id LIMIT 1
    ) next WHERE place < ${teamsPerClaim}
  )
  SELECT team_id FROM team ORDER BY place`;

/**
 * Of some teams. They take turns, whatever the number of their outstanding ends, and so do ends that need the cluster
 * and those that only end a workload: which of them is first is left to chance, so that none is always last. Of one
 * team the oldest goes first.
 */
const claim = `WITH turns AS (
    SELECT kind, id, run, start, turn
    FROM unnest($2::uuid[]) team (team_id) CROSS JOIN (VALUES (true), (false)) need (has_run) CROSS JOIN LATERAL (
      SELECT kind, id, run, start, row_number() OVER (ORDER BY try_at, id) AS turn FROM given_up_end given
      WHERE gpuaas_id = $1 AND given.team_id = team.team_id AND (run > 0) = has_run AND try_at <= now()
      ORDER BY try_at, id LIMIT ${perClaim}
    ) due
  ), next AS (
    SELECT kind, id, run, start, turn FROM turns ORDER BY turn, random() LIMIT ${perClaim}
  ), free AS (
    SELECT kind, id, run, start, turn FROM given_up_end given JOIN next USING (kind, id, run, start)
    WHERE try_at <= now() FOR UPDATE OF given SKIP LOCKED
  ), claimed AS (
    UPDATE given_up_end given SET try_at = clock_timestamp() + ${claimMs} * interval '1 millisecond' FROM free
    WHERE (given.kind, given.id, given.run, given.start) = (free.kind, free.id, free.run, free.start)
    RETURNING given.kind, given.id, given.run, given.start, turn
  )
  SELECT kind, id, run, start FROM claimed ORDER BY turn`;

/**
 * Ends what pods and VMs gave up to end, as while their cluster or gpuaas was away for longer than their deadline: the
 * run first, then its workload, so that no slice is given on while something still uses it. What of it is left on the
 * cluster is removed like the rest of every run.
 */
@Injectable()
export class GivenUpEnds extends ClusterRounds {
  protected override readonly everyMs = 5_000;

  /**
   * By cluster: the last team whose turn it was. A look goes on after it, so that all have their turn where none comes
   * to its end.
   */
  private readonly lastTeams = new Map<string, string>();

  constructor(
    dataSource: DataSource,
    private readonly clusters: Clusters,
    private readonly starts: PodStarts,
    private readonly lateEnds: LateEnds,
    settings: PodsSettings,
  ) {
    super('ends that were given up', settings, dataSource);
  }

  protected override due(): Promise<string[]> {
    return this.clustersBy(dueClusters);
  }

  /** Tries all that is due on one cluster, some at once and each by itself: one that does not end holds up no other. */
  override async look(gpuaasId: string): Promise<void> {
    const failures: string[] = [];
    const fail = (error: unknown): void => void failures.push(messageOf(error));
    const untilMs = performance.now() + visitMs;
    const left: OutstandingEnd[] = [];
    // The first round may begin in the midst of the teams.
    let [tried, hasAll, foundSome] = [0, false, true];
    let claiming: Promise<void> | undefined;
    const claimMore = async (): Promise<void> => {
      hasAll = true;
      while (left.length === 0 && performance.now() < untilMs && !this.stopping.signal.aborted) {
        const teams = await this.nextTeams(gpuaasId);
        if (teams.length > 0) left.push(...(await this.dataSource.query<OutstandingEnd[]>(claim, [gpuaasId, teams])));
        else if (foundSome) foundSome = false;
        else return;
      }
      foundSome = true;
      hasAll = left.length === 0;
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

  /** None at the end of a round of all teams: the next one begins. */
  private async nextTeams(gpuaasId: string): Promise<string[]> {
    const rows = await this.dataSource.query<{ team_id: string }[]>(nextTeams, [
      gpuaasId,
      this.lastTeams.get(gpuaasId) ?? nilId,
    ]);
    const teams = rows.map(({ team_id }) => team_id);
    this.lastTeams.set(gpuaasId, teams.at(-1) ?? nilId);
    return teams;
  }

  /** Tries one that is claimed, and writes down what came of it. Throws what keeps it from its end. */
  private async settle(gpuaasId: string, end: OutstandingEnd): Promise<void> {
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
  private async tryToEnd(gpuaasId: string, end: OutstandingEnd): Promise<boolean> {
    const { kind, id, run } = end;
    if (run > 0) {
      const driver = await this.clusters.driverOf(gpuaasId);
      const signal = this.within(graceMs + stopMs);
      const over = await stopRun(driver, { kind, id, run }, graceMs, { signal });
      if (!over) return false;
      const row = over.exit && (await this.rowOf(end));
      if (row) await this.lateEnds.tell(row, over.exit);
    }
    if (kind === 'pod') await this.starts.endWorkload({ podId: id, start: end.start, requestId: null });
    return true;
  }

  /** Null where it has begun another run since. */
  private rowOf({ kind, id, run }: OutstandingEnd): Promise<PodEntity | VmEntity | null> {
    const { manager } = this.dataSource;
    return kind === 'pod'
      ? manager.findOneBy(PodEntity, { podId: id, run })
      : manager.findOneBy(VmEntity, { instanceId: id, run });
  }
}
