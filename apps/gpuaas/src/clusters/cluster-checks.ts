import { openDocker, type ClusterDriver, type DockerSettings } from '@atoll/cluster';
import { clusterChanged, clusterPurpose, type Cluster } from '@atoll/contracts/gpuaas';
import { databaseNowMs, inBackground, OutageLog, Transactions } from '@atoll/database';
import { AppError, messageOf } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { systemContext } from '@atoll/rpc';
import { untilAborted } from '@atoll/waiting';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { BaremetalSecrets } from '../baremetal/hosts/baremetal-secrets.js';
import { GpuaasSettings } from '../gpuaas-settings.js';
import { ClusterRows } from './cluster-rows.js';
import { ClusterEntity, clusterToTell, hasAnswered } from '../model/cluster.entity.js';

const wellMs = 60_000;
const unreachableMs = 10_000;
const longestDetail = 500;

type Found = Pick<ClusterEntity, 'status' | 'checks' | 'identity'>;

/** Checks whether clusters answer and have what pods need: when one is set, on request, and from time to time. */
@Injectable()
export class ClusterChecks implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(ClusterChecks.name);
  private readonly outages = new OutageLog(this.logger);
  private timer: NodeJS.Timeout | undefined;
  private claiming: Promise<void> | undefined;
  private readonly stopping = new AbortController();
  private readonly lanes = { answering: new Lane(), silent: new Lane() };

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly outbox: Outbox,
    private readonly rows: ClusterRows,
    private readonly secrets: BaremetalSecrets,
    private readonly settings: GpuaasSettings,
  ) {}

  onApplicationBootstrap(): void {
    if (this.settings.workers.isIdle) return;
    this.timer = setInterval(() => void this.round(), this.settings.clusterLookMs);
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    await this.settled();
  }

  /** Resolves when no check is under way that began by itself, and none is about to begin. */
  async settled(): Promise<void> {
    const { answering, silent } = this.lanes;
    while (this.claiming || answering.size + silent.size > 0)
      await Promise.all([this.claiming, ...answering.underWay, ...silent.underWay]);
  }

  /**
   * Checks one cluster, stores the findings, and returns them. A hanging cluster takes `clusterPatienceMs` without
   * delaying others. A cluster that answered but was unusable gets twice as long, since it takes some seconds to find
   * out whether it works now.
   */
  async check(asked: ClusterEntity): Promise<ClusterEntity> {
    const { clusterPatienceMs } = this.settings;
    const isOfNoUse = asked.status === 'unreachable' && hasAnswered(asked);
    const begun = await this.transactions.run((manager) => this.rows.beginLook(manager, asked));
    return this.keep(begun, await this.look(begun, isOfNoUse ? 2 * clusterPatienceMs : clusterPatienceMs));
  }

  /**
   * Of a round. One that answered before is asked again before pods are refused: an engine that restarts, or whose host
   * is busy, is not away. What answers and is of no use, as another engine, is refused at once. One that is unreachable
   * has as long as that second look, or a busy one would never come back.
   */
  private async checkDue(asked: ClusterEntity): Promise<void> {
    const { clusterPatienceMs } = this.settings;
    const isSilent = asked.hasMissed || asked.status === 'unreachable';
    const found = await this.look(asked, isSilent ? 2 * clusterPatienceMs : clusterPatienceMs);
    const isMiss = found.checks.some(({ name, ok }) => name === 'reachable' && !ok);
    const isFirstMiss = isMiss && asked.status !== 'unreachable' && !asked.hasMissed;
    await (isFirstMiss ? this.keepMiss(asked) : this.keep(asked, found));
  }

  /** In the row, so that the second look has its turn like others, and none waits here for it. */
  private async keepMiss({ gpuaasId, setting, looks }: ClusterEntity): Promise<void> {
    await this.transactions.run((manager) =>
      manager.query(
        `UPDATE cluster SET has_missed = true, latest_look = $4, next_check_at = clock_timestamp() + $3 * interval '1 millisecond'
         WHERE gpuaas_id = $1 AND setting = $2 AND latest_look < $4`,
        [gpuaasId, setting, this.settings.clusterAgainMs, looks],
      ),
    );
  }

  private async keep({ gpuaasId, ...asked }: ClusterEntity, found: Found): Promise<ClusterEntity> {
    return this.transactions.run(async (manager) => {
      const cluster = await this.rows.read(manager, gpuaasId, 'change');
      // Set anew meanwhile: what was found is of what it was before.
      if (cluster.setting !== asked.setting) return cluster;
      // A look that began later has ended already: what it found is newer.
      if (Number(cluster.latestLook) > Number(asked.looks)) return cluster;
      const hasChanged = cluster.since === null || cluster.status !== found.status;
      const { status, checks } = found;
      const everyMs = status === 'unreachable' ? unreachableMs : wellMs;
      const nowMs = await databaseNowMs(manager);
      const nextCheckAt = new Date(nowMs + everyMs);
      Object.assign(cluster, {
        status,
        checks,
        nextCheckAt,
        hasMissed: false,
        latestLook: asked.looks,
        identity: cluster.identity ?? found.identity,
      });
      if (hasChanged)
        Object.assign(cluster, { since: new Date(nowMs), revision: String(Number(cluster.revision) + 1) });
      await manager.save(cluster);
      if (hasChanged) await this.outbox.add(manager, clusterChanged, clusterToTell(cluster), systemContext('gpuaas'));
      return cluster;
    });
  }

  private async look(cluster: ClusterEntity, patienceMs: number): Promise<Found> {
    if (cluster.driver !== 'docker') return simulated;
    const patience = AbortSignal.any([AbortSignal.timeout(patienceMs), this.stopping.signal]);
    const found = await untilAborted(patience, this.ask(cluster, patience)).catch(() =>
      unreachable('The engine does not answer.', lookAtEngine),
    );
    // What a service that stops did not wait for tells nothing of the cluster.
    if (this.stopping.signal.aborted) throw new AppError('unavailable', 'The service is stopping.');
    return found;
  }

  private async ask(cluster: ClusterEntity, signal: AbortSignal): Promise<Found> {
    let driver: ClusterDriver | undefined;
    try {
      driver = openDocker(this.settingsOf(cluster), 'check', cluster.publicHost);
      return await findOut(driver, cluster.identity, signal);
    } catch (error) {
      return unreachable(messageOf(error), lookAtEngine);
    } finally {
      await driver?.close().catch(() => undefined);
    }
  }

  private settingsOf({ doorImage, gpuaasId, sealedTls, socket, url }: ClusterEntity): DockerSettings {
    const image = doorImage ?? this.settings.doorImage;
    if (socket !== null) return { socket, doorImage: image };
    if (url === null || sealedTls === null)
      throw new Error('The cluster has neither a socket nor a URL with certificates.');
    const tls = this.secrets.required().open(sealedTls, clusterPurpose(gpuaasId)).toString('utf8');
    return { url, ...(JSON.parse(tls) as Pick<DockerSettings, 'ca' | 'cert' | 'key'>), doorImage: image };
  }

  /**
   * Begins checks of clusters that are due, as many as there is room for, and goes on as they end, until none is due.
   * However many end at once, requests have connections to the database. Clusters that are unreachable have half of the
   * places at most, so that however many hang, others have their turns.
   */
  round(): Promise<void> {
    this.claiming ??= inBackground(() => this.begin()).finally(() => (this.claiming = undefined));
    return this.claiming;
  }

  private async begin(): Promise<void> {
    if (this.stopping.signal.aborted) return;
    const { answering, silent } = this.lanes;
    try {
      await this.fill(answering, this.room(), `status <> 'unreachable'`);
      await this.fill(silent, Math.min(this.room(), this.silentAtMost - silent.size), `status = 'unreachable'`);
    } catch (error) {
      this.outages.log('warn', 'Cannot look for clusters to check; retrying', error);
    }
  }

  private room(): number {
    return this.settings.clusterChecks - this.lanes.answering.size - this.lanes.silent.size;
  }

  private get silentAtMost(): number {
    return Math.ceil(this.settings.clusterChecks / 2);
  }

  private async fill(lane: Lane, room: number, which: Which): Promise<void> {
    if (room <= 0) return;
    const due = await this.claim(room, which);
    lane.mayHaveMore = due.length === room;
    for (const cluster of due) this.track(lane, this.checkDue(cluster));
  }

  /** In the database, so that each cluster is checked by one replica. A simulated one always answers. */
  private async claim(room: number, which: Which): Promise<ClusterEntity[]> {
    return this.transactions.run(async (manager) => {
      const rows = await manager
        .createQueryBuilder(ClusterEntity, 'cluster')
        .where(`driver <> 'simulated' AND next_check_at <= (SELECT clock_timestamp())`)
        .andWhere(which)
        .orderBy('cluster.nextCheckAt')
        .limit(room)
        .setLock('pessimistic_write')
        .setOnLocked('skip_locked')
        .getMany();
      const ids = rows.map(({ gpuaasId }) => gpuaasId);
      await manager.query(
        `UPDATE cluster SET looks = looks + 1, next_check_at = clock_timestamp() + interval '1 minute' WHERE gpuaas_id = ANY ($1::bigint[])`,
        [ids],
      );
      return rows.map((row) => ({ ...row, looks: String(Number(row.looks) + 1) }));
    });
  }

  private track(lane: Lane, work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted)
          this.logger.warn(`Cannot store the check of a cluster; retrying: ${String(error)}`);
      })
      .finally(() => {
        lane.underWay.delete(tracked);
        const { answering, silent } = this.lanes;
        // One claim for many places, not one a place.
        const isHalfFree = 2 * answering.size <= this.settings.clusterChecks - silent.size;
        if ((answering.mayHaveMore && isHalfFree) || (silent.mayHaveMore && 2 * silent.size <= this.silentAtMost))
          void this.round();
      });
    lane.underWay.add(tracked);
  }
}

type Which = `status <> 'unreachable'` | `status = 'unreachable'`;

/** Checks that are under way, of clusters that answered when they were last asked, or of those that did not. */
class Lane {
  readonly underWay = new Set<Promise<void>>();
  mayHaveMore = false;

  get size(): number {
    return this.underWay.size;
  }
}

const lookAtEngine = 'Start the engine, or correct its address and its credentials.';

const simulated: Found = {
  status: 'ok',
  checks: [{ name: 'reachable', ok: true, detail: 'The cluster is simulated.', how_to_fix: null }],
  identity: null,
};

async function findOut(driver: ClusterDriver, known: string | null, signal: AbortSignal): Promise<Found> {
  const checks = await driver.check(signal);
  const shown: Cluster['checks'] = checks.map(({ name, ok, detail, howToFix }) => ({
    name,
    ok,
    detail: detail.slice(0, longestDetail),
    how_to_fix: howToFix,
  }));
  if (checks.some(({ ok, isVital }) => !ok && isVital)) return { status: 'unreachable', checks: shown, identity: null };
  const identity = await driver.identify(signal);
  if (known !== null && known !== identity) {
    const how_to_fix = 'Restore the former engine, or set the cluster again if this engine is intended.';
    const another = { name: 'identity', ok: false, detail: 'Another engine answers at this address.', how_to_fix };
    return { status: 'unreachable', checks: [...shown, another], identity: null };
  }
  return { status: checks.every(({ ok }) => ok) ? 'ok' : 'degraded', checks: shown, identity };
}

function unreachable(detail: string, how_to_fix: string): Found {
  const reachable = { name: 'reachable', ok: false, detail: detail.slice(0, longestDetail), how_to_fix };
  return { status: 'unreachable', checks: [reachable], identity: null };
}
