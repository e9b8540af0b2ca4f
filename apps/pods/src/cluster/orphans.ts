import { messageOf } from '@atoll/errors';
import type { ClusterDriver, FoundObject, ObjectRef } from '@atoll/cluster';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { doorsBefore } from '../model/exposure.entity.js';
import { livePod } from '../model/pod.machine.js';
import { PodsSettings } from '../pods-settings.js';
import { ClusterRounds } from './cluster-rounds.js';
import { Clusters } from './clusters.js';

const listMs = 30_000;
const removeMs = 8_000;
const perQuery = 1_000;

type OrphanRow = Pick<ObjectRef, 'kind' | 'id' | 'run'>;

/**
 * Removes what clusters have and no row needs: the pods, VMs, doors and volumes of rows that are deleted, after a
 * grace that gives an operator time where rows were lost. A driver lists objects of this installation alone. A VM and a
 * volume go only where their row says that they are deleted, since their data goes with them; pods and doors go without
 * a row, too.
 */
@Injectable()
export class Orphans extends ClusterRounds {
  constructor(
    dataSource: DataSource,
    private readonly clusters: Clusters,
    settings: PodsSettings,
  ) {
    super('what no row needs', settings, dataSource);
  }

  protected override get everyMs(): number {
    return this.settings.orphanLookMs;
  }

  protected override due(): Promise<string[]> {
    return this.clustersBy('SELECT gpuaas_id FROM cluster WHERE NOT is_unreachable');
  }

  /** Looks at all that one cluster has, and returns how much was removed. */
  override async look(gpuaasId: string): Promise<number> {
    const driver = await this.clusters.driverOf(gpuaasId);
    const listed: FoundObject[] = [];
    for await (const found of driver.list(this.within(listMs))) listed.push(found);
    const orphans = await this.orphansAmong(listed.map(({ ref }) => ref));
    await this.keep(gpuaasId, orphans);
    const unstarted = listed.flatMap(({ ref, isUnstarted }) => (isUnstarted ? [ref] : []));
    const ripe = await this.ripe(gpuaasId, unstarted);
    const { orphansAtOnce } = this.settings;
    if (ripe.length > orphansAtOnce) {
      const what = `${ripe.length} of ${listed.length} objects on the cluster of GPU service ${gpuaasId} belong to no row`;
      this.logger.warn(`${what}; none is removed, since ATOLL_ORPHANS_AT_ONCE is ${orphansAtOnce}`);
      return 0;
    }
    for (const ref of ripe) await this.remove(gpuaasId, driver, ref);
    return ripe.length;
  }

  private async orphansAmong(listed: readonly ObjectRef[]): Promise<OrphanRow[]> {
    const orphans: OrphanRow[] = [];
    for (let at = 0; at < listed.length; at += perQuery) {
      const part = listed.slice(at, at + perQuery);
      orphans.push(...(await this.dataSource.query<OrphanRow[]>(orphansQuery, [...columnsOf(part), part.map(teamOf)])));
    }
    return orphans;
  }

  /**
   * Those that were found before keep when that was; those that are there no more, or are needed again, are forgotten.
   */
  private async keep(gpuaasId: string, orphans: readonly OrphanRow[]): Promise<void> {
    const values = [gpuaasId, ...columnsOf(orphans)];
    await this.dataSource.query(
      `DELETE FROM orphan WHERE gpuaas_id = $1
         AND (kind, id, run) NOT IN (SELECT kind, id, run FROM unnest($2::text[], $3::text[], $4::integer[]) found (kind, id, run))`,
      values,
    );
    await this.dataSource.query(
      `INSERT INTO orphan (gpuaas_id, kind, id, run) SELECT $1, kind, id, run
       FROM unnest($2::text[], $3::text[], $4::integer[]) found (kind, id, run) ON CONFLICT DO NOTHING`,
      values,
    );
  }

  /** Those whose grace is over. That of a run that never started, as its creator was killed, is the time of a look. */
  private async ripe(gpuaasId: string, unstarted: readonly ObjectRef[]): Promise<ObjectRef[]> {
    const { orphanGraceMs, orphanLookMs } = this.settings;
    const rows = await this.dataSource.query<(OrphanRow & { team_id: string | null })[]>(
      `SELECT orphan.kind, orphan.id, orphan.run, team_id FROM orphan LEFT JOIN shared_volume
         ON volume_id = CASE WHEN orphan.kind = 'volume' THEN substring(orphan.id FROM '^\\d{1,18}$')::bigint END
       WHERE orphan.gpuaas_id = $1 AND found_at <= clock_timestamp()::timestamptz(3) - interval '1 millisecond' * CASE
         WHEN (orphan.kind, orphan.id, orphan.run) IN (SELECT * FROM unnest($4::text[], $5::text[], $6::integer[])) THEN LEAST($2::bigint, $3::bigint) ELSE $2::bigint END
       ORDER BY (orphan.kind = 'volume'), found_at, orphan.kind, orphan.id, orphan.run`,
      [gpuaasId, orphanGraceMs, orphanLookMs, ...columnsOf(unstarted)],
    );
    return rows.map(({ kind, id, run, team_id }) =>
      kind === 'volume' ? { kind, id, run: 0, teamId: team_id ?? '' } : { kind, id, run },
    );
  }

  private async remove(gpuaasId: string, driver: ClusterDriver, ref: ObjectRef): Promise<void> {
    const name = `${ref.kind} ${ref.id}, run ${ref.run}, from the cluster of GPU service ${gpuaasId}`;
    try {
      await driver.remove(ref, this.within(removeMs));
      this.logger.log(`Removed ${name}: no row needs it`);
    } catch (error) {
      this.logger.warn(`Cannot remove ${name}, which belongs to no row; retrying: ${messageOf(error)}`);
    }
  }
}

/**
 * A run is needed while `pod_run` has it or its pod is at it; a door while its exposed service is not deleted, and sees
 * to this run itself (`doorsBefore`). A volume of a deleted row is that of the row's team: another team may have one of
 * the same number, made before the database was restored from a backup. Ids in forms that this service does not give
 * are nobody's. `OFFSET 0` has each looked up in its index: rows that have ended are many, and are not to be read.
 */
const orphansQuery = `SELECT kind, id, run FROM (
    SELECT kind, id, run, team, substring(id FROM '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid AS instance_id,
      substring(id FROM '^svc-(\\d{1,18})$')::bigint AS service_id, substring(id FROM '^\\d{1,18}$')::bigint AS volume_id
    FROM unnest($1::text[], $2::text[], $3::integer[], $4::text[]) listed (kind, id, run, team)
  ) found WHERE CASE kind
    WHEN 'pod' THEN NOT EXISTS (SELECT FROM pod_run WHERE pod_run.pod_id = found.instance_id AND pod_run.run = found.run OFFSET 0)
      AND NOT EXISTS (SELECT FROM pod WHERE pod.pod_id = found.instance_id AND pod.run = found.run AND ${livePod} OFFSET 0)
    WHEN 'door' THEN NOT EXISTS (SELECT FROM exposure WHERE exposure.service_id = found.service_id AND state <> 'deleted'
      AND found.run BETWEEN exposure.run - ${doorsBefore} AND exposure.run + 1 OFFSET 0)
    WHEN 'volume' THEN EXISTS (SELECT FROM shared_volume WHERE shared_volume.volume_id = found.volume_id AND team_id::text = found.team
      AND state = 'deleted' OFFSET 0)
    WHEN 'vm' THEN EXISTS (SELECT FROM vm WHERE vm.instance_id = found.instance_id AND state = 'deleted' OFFSET 0)
    ELSE false
  END`;

function columnsOf(refs: readonly OrphanRow[]): [string[], string[], number[]] {
  return [refs.map(({ kind }) => kind), refs.map(({ id }) => id), refs.map(({ run }) => run)];
}

function teamOf(ref: ObjectRef): string {
  return ref.kind === 'volume' ? ref.teamId : '';
}
