import { randomUUID } from 'node:crypto';
import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { holdSeconds, LateSources } from './late-sources.js';
import type { LogSource } from './log-line.js';
import { saveReads, type ReadLines } from './log-progress.js';

/** A source to read: a run of a pod from its cursor on. */
export interface Claimed {
  readonly source: LogSource;
  readonly podId: string;
  readonly run: number;
  readonly cursor: string | null;
  readonly lastNs: bigint;
}

interface ClaimedRow {
  no: number;
  scope_no: number;
  team_id: string;
  gpuaas_id: string;
  pod_name: string;
  is_platform: boolean;
  pod_id: string;
  run: number;
  cursor: string | null;
  last_ns: string;
}

export interface PlatformLine {
  readonly id: string;
  readonly at: Date;
  readonly message: string;
}

/** A replica that has not shown up for so long reads no more. */
export const aliveSeconds = 15;
/** Runs that are claimed at once. */
const atOnce = 1_000;
/**
 * Replicas that take over from another claim side by side: each looks at all runs for so long after it has found some.
 */
const settleMs = 5_000;
/** Between two looks at all runs. Nothing should be found by them but what a replica has left that has come or gone. */
const allMs = 60_000;

/** Pods with runs that nobody has begun to read: an index has these alone, however many pods run. */
const unclaimedPods = 'SELECT pod_id FROM pod_run WHERE NOT is_claimed AND NOT is_log_read';

/**
 * `OFFSET 0`, here and below, has each pod looked up in the index: most sources are of pods that are gone, and are not
 * to be scanned each second.
 */
const newSources = `
  WITH pods AS (
    SELECT pod_id, pod_name, team_id, gpuaas_id FROM pod WHERE pod_id IN (
      SELECT pod_id FROM (${unclaimedPods} UNION SELECT pod_id FROM platform_line) AS writing
      WHERE NOT EXISTS (SELECT FROM log_source source WHERE source.pod_id = writing.pod_id AND is_platform OFFSET 0) LIMIT 1000
    )
  ), known AS (
    INSERT INTO log_scope (team_id, gpuaas_id) SELECT DISTINCT team_id, gpuaas_id FROM pods ORDER BY 1, 2
    ON CONFLICT (team_id, gpuaas_id) DO UPDATE SET team_id = excluded.team_id RETURNING no, team_id, gpuaas_id
  )
  INSERT INTO log_source (pod_id, pod_name, is_platform, scope_no)
  SELECT pod_id, pod_name, kind.is_platform, known.no
  FROM pods JOIN known USING (team_id, gpuaas_id) CROSS JOIN (VALUES (false), (true)) AS kind (is_platform)
  ORDER BY pod_id, kind.is_platform ON CONFLICT DO NOTHING`;

/** Whether no other living replica reads a source. */
const free = (source: string) => `(${source}.reader_id IS NULL OR ${source}.reader_id = $1::uuid OR NOT EXISTS (
    SELECT FROM log_reader other WHERE other.id = ${source}.reader_id AND other.alive_until > clock_timestamp()
  ))`;

/**
 * Those of `wanted` (no, run, since), which are free, become this replica’s, unless another one has claimed them at the
 * same time. Until their reader has caught up they are late: by what was known of them, `since`, or since the replica
 * that read them has stopped.
 */
const claimOf = (wanted: string) => `
  UPDATE log_source source SET reader_id = $1::uuid,
    read_to = coalesce(source.read_to, wanted.since, (
      SELECT coalesce(before.read_to, before.alive_until - interval '${aliveSeconds} seconds') FROM log_reader before
      WHERE before.id = source.reader_id
    ), clock_timestamp()),
    holds_until = coalesce(source.holds_until, clock_timestamp() + interval '${holdSeconds} seconds')
  FROM (${wanted}) AS wanted, log_scope scope
  WHERE source.no = wanted.no AND scope.no = source.scope_no AND ${free('source')}
  RETURNING source.no, scope_no, scope.team_id, scope.gpuaas_id::text, pod_name, is_platform, source.pod_id, wanted.run,
    CASE WHEN source.run = wanted.run THEN cursor END AS cursor, last_ns::text`;

/**
 * Of `pods` and of those that $3 names. Runs of one pod are read one after the other, so that its lines keep their
 * order.
 */
const claimRunsOf = (pods: string) =>
  claimOf(`
  SELECT found.no, first.run, NULL::timestamptz AS since FROM (${pods} UNION SELECT unnest($3::uuid[])) AS pods (pod_id)
    CROSS JOIN LATERAL (SELECT no, reader_id FROM log_source WHERE pod_id = pods.pod_id AND NOT is_platform OFFSET 0) AS found
    CROSS JOIN LATERAL (SELECT run FROM pod_run WHERE pod_id = pods.pod_id AND NOT is_log_read ORDER BY run LIMIT 1) AS first
  WHERE found.no NOT IN (SELECT unnest($2::integer[])) AND ${free('found')}
  ORDER BY pods.pod_id LIMIT ${atOnce}`);
const claimNewRuns = claimRunsOf(unclaimedPods);
const claimAnyRuns = claimRunsOf('SELECT pod_id FROM pod_run WHERE NOT is_log_read');

/** Waits for nobody: a run that is locked is looked at again, and marked the next time. */
const markClaimed = `
  UPDATE pod_run SET is_claimed = true WHERE (pod_id, run) IN (
    SELECT pod_id, run FROM unnest($1::uuid[], $2::integer[]) AS claimed (pod_id, run) JOIN pod_run USING (pod_id, run)
    FOR NO KEY UPDATE OF pod_run SKIP LOCKED
  ) RETURNING pod_id, run`;

const claimPlatform = claimOf(`
  SELECT found.no, 0 AS run, min(line.at) AS since
  FROM platform_line line JOIN log_source found ON found.pod_id = line.pod_id AND found.is_platform
  WHERE found.no <> ALL ($2::integer[]) AND ${free('found')} GROUP BY found.no LIMIT 1000`);

/** What each replica of the service reads, and how far it is. */
@Injectable()
export class LogClaims {
  readonly readerId = randomUUID();
  /** The other replicas that read. */
  private others = '';
  /** By source: what was claimed here, and is still read as far as this knows. */
  private readonly held = new Map<number, Claimed>();
  /** Sources of these whose runs are not marked as claimed yet. */
  private readonly unmarked = new Set<number>();
  /** Pods whose runs were read here and are no more, to their end or not. */
  private readonly again = new Set<string>();
  /** Until when each look is one at all runs, and when the next is due at the latest. */
  private allUntilMs = -Infinity;
  private nextAllMs = -Infinity;
  readonly late: LateSources;

  constructor(private readonly statements: Statements) {
    this.late = new LateSources(statements, this.readerId);
  }

  /**
   * Says that this replica lives, and forgets those that do not, once nothing that they have read is left. Returns the
   * database’s clock, epoch milliseconds.
   */
  async beAlive(): Promise<number> {
    const [row] = await this.statements.query<{ others: string; now: Date }>(
      `WITH dead AS (
         DELETE FROM log_reader reader WHERE alive_until < clock_timestamp() - interval '1 hour'
           AND NOT EXISTS (SELECT FROM log_source WHERE reader_id = reader.id)
       ), alive AS (
         INSERT INTO log_reader (id, alive_until, started_at, read_to)
         VALUES ($1, clock_timestamp() + make_interval(secs => $2), clock_timestamp(), clock_timestamp())
         ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until
       )
       SELECT coalesce(string_agg(id::text, ',' ORDER BY id), '') AS others, clock_timestamp() AS now
       FROM log_reader WHERE id <> $1 AND alive_until > clock_timestamp()`,
      [this.readerId, aliveSeconds],
    );
    if (!row) throw new Error('The database returned no time.');
    const { others, now } = row;
    // What one of them has read may be free.
    if (others !== this.others) [this.nextAllMs, this.allUntilMs] = [-Infinity, performance.now() + settleMs];
    this.others = others;
    return now.getTime();
  }

  /** Gives up what this replica reads, so that others need not wait. */
  async release(): Promise<void> {
    this.late.stop();
    await this.statements.query('UPDATE log_reader SET alive_until = clock_timestamp() WHERE id = $1', [this.readerId]);
  }

  /** Runs to read that no replica reads, but for sources that are read here already. */
  async claimRuns(reading: readonly number[]): Promise<Claimed[]> {
    this.letGo(new Set(reading));
    await this.mark();
    await this.statements.query(newSources, []);
    const nowMs = performance.now();
    const isAll = nowMs < this.allUntilMs || nowMs >= this.nextAllMs;
    // Until one has succeeded.
    if (isAll) this.nextAllMs = -Infinity;
    const values = [this.readerId, reading, [...this.again]];
    const rows = isAll
      ? await this.statements.query<ClaimedRow>(claimAnyRuns, values)
      : await this.statements.query<ClaimedRow>(claimNewRuns, values);
    if (isAll) this.nextAllMs = nowMs + allMs;
    if (isAll && rows.length > 0) this.allUntilMs = nowMs + settleMs;
    const claimed = rows.map(claimedOf);
    // Those that were not claimed have no more to read, or another replica reads them.
    if (rows.length < atOnce) this.again.clear();
    for (const one of claimed) {
      this.held.set(one.source.no, one);
      this.unmarked.add(one.source.no);
      this.late.claimed(one.source.no);
      this.again.delete(one.podId);
    }
    return claimed;
  }

  private letGo(reading: ReadonlySet<number>): void {
    for (const [no, { podId }] of this.held) {
      if (reading.has(no)) continue;
      this.held.delete(no);
      this.unmarked.delete(no);
      this.again.add(podId);
    }
  }

  /**
   * Only what is being read is marked: where a claim was not heard of, as its answer was lost, the run is claimed
   * again.
   */
  private async mark(): Promise<void> {
    if (this.unmarked.size === 0) return;
    const claimed = [...this.unmarked].flatMap((no) => this.held.get(no) ?? []);
    const values = [claimed.map(({ podId }) => podId), claimed.map(({ run }) => run)];
    const marked = await this.statements.query<{ pod_id: string; run: number }>(markClaimed, values);
    const runs = new Set(marked.map(({ pod_id, run }) => `${pod_id} ${run}`));
    for (const { podId, run, source } of claimed) if (runs.has(`${podId} ${run}`)) this.unmarked.delete(source.no);
  }

  /**
   * Sources of the platform that have lines to store, with these, but for sources whose lines are being stored here
   * already.
   */
  async claimPlatformLines(storing: readonly number[]): Promise<(Claimed & { written: PlatformLine[] })[]> {
    const rows = await this.statements.query<ClaimedRow>(claimPlatform, [this.readerId, storing]);
    if (rows.length === 0) return [];
    const lines = await this.statements.query<PlatformLine & { pod_id: string }>(
      'SELECT id::text, pod_id, at, message FROM platform_line WHERE pod_id = ANY ($1::uuid[]) ORDER BY platform_line.id LIMIT 5000',
      [rows.map(({ pod_id }) => pod_id)],
    );
    const byPod = Map.groupBy(lines, ({ pod_id }) => pod_id);
    return rows.flatMap((row) => {
      const written = byPod.get(row.pod_id);
      return written ? [{ ...claimedOf(row), written }] : [];
    });
  }

  /**
   * Whether a run that the cluster does not have is over: then nothing of it can be read any more. Where it was the
   * last one, the same statement takes its source from this replica: nobody else would.
   */
  async isOver({ podId, run, source }: Claimed): Promise<boolean> {
    const rows = await this.statements.query<{ is_over: boolean }>(
      `WITH over AS (
         UPDATE pod_run SET is_log_read = true WHERE pod_id = $1 AND run = $2 AND ended_at IS NOT NULL RETURNING pod_id
       ), found AS (
         SELECT EXISTS (SELECT FROM over) OR NOT EXISTS (SELECT FROM pod_run WHERE pod_id = $1 AND run = $2 AND NOT is_log_read) AS is_over
       ), gone AS (
         UPDATE log_source SET reader_id = NULL, read_to = NULL, holds_until = NULL FROM found
         WHERE is_over AND no = $4 AND reader_id = $3::uuid
           AND NOT EXISTS (SELECT FROM pod_run other WHERE other.pod_id = $1 AND other.run <> $2 AND NOT other.is_log_read OFFSET 0)
       )
       SELECT is_over FROM found`,
      [podId, run, this.readerId, source.no],
    );
    return rows[0]?.is_over ?? false;
  }

  /** Within the transaction that stores the lines. Returns the numbers of the sources that this replica still reads. */
  save(manager: EntityManager, reads: readonly ReadLines[]): Promise<ReadonlySet<number>> {
    return saveReads(manager, this.readerId, reads);
  }
}

function claimedOf(row: ClaimedRow): Claimed {
  return {
    source: {
      no: row.no,
      scopeNo: row.scope_no,
      teamId: row.team_id,
      gpuaasId: row.gpuaas_id,
      podName: row.pod_name,
      isPlatform: row.is_platform,
    },
    podId: row.pod_id,
    run: row.run,
    cursor: row.cursor,
    lastNs: BigInt(row.last_ns),
  };
}
