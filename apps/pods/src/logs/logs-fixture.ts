import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  ClusterError,
  dockerCapabilities,
  type Capabilities,
  type ClusterDriver,
  type LogBatch,
  type LogLine,
  type ObjectRef,
} from '@atoll/cluster';
import { type UserCaller } from '@atoll/contracts';
import { podLogs, type PodLogPage, type ReadPodLogs } from '@atoll/contracts/pods';
import { Statements, Transactions } from '@atoll/database';
import type { BareServiceUnderTest } from '@atoll/testing';
import { aTeam, contextOf, memberOf, OwnerOfTeams, ServiceUnderTest, startServiceUnderTest } from '@atoll/testing';
import { InProcessBus } from '@atoll/rpc';
import { Clusters } from '../cluster/clusters.js';
import { Neighbours } from '../neighbours-fixture.js';
import { PodsSettings } from '../pods-settings.js';
import { service } from '../service.js';
import { LogClaims } from './log-claims.js';
import { LogCollector } from './log-collector.js';
import { LogStore } from './log-store.js';
import { LogVolume } from './log-volume.js';
import { LogWriter } from './log-writer.js';
import { LokiLogStore } from './loki-log-store.js';

/**
 * What a run has written, as an engine keeps it: at least a nanosecond apart, or all in one second as some engines tell
 * it.
 */
class WrittenRun {
  readonly lines: LogLine[] = [];
  hasEnded = false;
}

/** Engines whose runs write what a spec says. A cursor is the number of lines that were read. */
export class ScriptedEngines implements Pick<
  Clusters,
  'driverOf' | 'capabilitiesOf' | 'requireReachable' | 'publicHostOf' | 'requireSetting'
> {
  private readonly runs = new Map<string, WrittenRun>();
  /** Lines that one batch has. */
  perBatch = 2;
  /** What the next reads fail with. */
  readonly faults: Error[] = [];
  /** Pods whose cluster does not answer. */
  readonly unreachable = new Set<string>();

  driverOf(): Promise<ClusterDriver> {
    const readLogs = (ref: ObjectRef, after: string | null, signal: AbortSignal) => this.read(ref, after, signal);
    return Promise.resolve({ readLogs } as unknown as ClusterDriver);
  }

  capabilitiesOf(): Promise<Capabilities> {
    return Promise.resolve(dockerCapabilities);
  }

  requireReachable(): Promise<void> {
    return Promise.resolve();
  }

  publicHostOf(): Promise<string> {
    return Promise.resolve('127.0.0.1');
  }

  requireSetting(): Promise<void> {
    return Promise.resolve();
  }

  run(podId: string, run: number): WrittenRun {
    const key = `${podId}.${run}`;
    const found = this.runs.get(key) ?? new WrittenRun();
    this.runs.set(key, found);
    return found;
  }

  remove(podId: string, run: number): void {
    this.runs.delete(`${podId}.${run}`);
  }

  private async *read({ id, run }: ObjectRef, after: string | null, signal: AbortSignal): AsyncGenerator<LogBatch> {
    const written = this.runs.get(`${id}.${run}`);
    if (!written) throw new ClusterError('not_found', 'There is no such run.');
    let wasCurrent = false;
    for (let at = Number(after ?? 0); !signal.aborted;) {
      const away = this.unreachable.has(id) ? new ClusterError('unreachable', 'It does not answer.') : undefined;
      const fault = away ?? this.faults.shift();
      if (fault) throw fault;
      const lines = written.lines.slice(at, at + this.perBatch);
      at += lines.length;
      const isComplete = written.hasEnded && at === written.lines.length;
      const isCurrent = at === written.lines.length;
      if (lines.length > 0 || isComplete || isCurrent !== wasCurrent)
        yield { lines, cursor: String(at), isComplete, isCurrent };
      if (isComplete) return;
      wasCurrent = isCurrent;
      if (lines.length === 0) await delay(5);
    }
  }
}

/** However slow the machine is. */
const patientLoki = (url: string) => ({
  inject: [Transactions],
  useFactory: (transactions: Transactions) =>
    new LokiLogStore(transactions, { url, retentionDays: 7, readMs: 20_000, pushMs: 20_000 }),
});

export interface WrittenPod {
  readonly podId: string;
  readonly podName: string;
  readonly teamId: string;
}

/** The pods service, whose workers stand still, on engines of the spec’s. */
export class LogsFixture extends ServiceUnderTest {
  readonly engines: ScriptedEngines;
  readonly owner: OwnerOfTeams;
  private readonly replicas: LogCollector[] = [];

  private constructor(
    started: ConstructorParameters<typeof BareServiceUnderTest>[0],
    engines: ScriptedEngines,
    owner: OwnerOfTeams,
  ) {
    super(started);
    this.engines = engines;
    this.owner = owner;
  }

  static async start(settings: Partial<PodsSettings> = {}): Promise<LogsFixture> {
    const { lokiUrl } = settings;
    const engines = new ScriptedEngines();
    const bus = new InProcessBus();
    const owner = new OwnerOfTeams(bus);
    new Neighbours(bus);
    const started = await startServiceUnderTest(service, {
      bus,
      settings: { sealKeys: `specs:${randomBytes(32).toString('base64')}`, workers: { isIdle: true }, ...settings },
      providers: [
        { provide: Clusters, useValue: engines },
        ...(lokiUrl === undefined ? [] : [{ provide: LogStore, ...patientLoki(lokiUrl) }]),
      ],
    });
    return new LogsFixture(started, engines, owner);
  }

  get collector(): LogCollector {
    return this.get(LogCollector);
  }

  /** As another process of the service: what one holds in memory, the other does not know. It reads until `stop`. */
  replica(
    volume = new LogVolume(this.get(Statements), this.get(PodsSettings)),
    claims = new LogClaims(this.get(Statements)),
  ): LogCollector {
    const [store, clusters, settings] = [this.get(LogStore), this.get(Clusters), this.get(PodsSettings)];
    const collector = new LogCollector(store, claims, new LogWriter(store, claims), volume, clusters, settings);
    this.replicas.push(collector);
    return collector;
  }

  override async stop(): Promise<void> {
    await Promise.all(this.replicas.map((one) => one.beforeApplicationShutdown()));
    await super.stop();
  }

  team(): string {
    const team = aTeam();
    this.owner.teams.push(team);
    return team.team_id;
  }

  /** A pod with a first run. */
  async pod(teamId: string, { gpuaasId = '1', podName = `pod-${randomUUID()}` } = {}): Promise<WrittenPod> {
    const podId = randomUUID();
    await this.query(
      `INSERT INTO pod (pod_id, pod_name, name, team_id, workspace_id, subscription_id, gpuaas_id, region_id, profile, image, vgpus, command, ports,
         volumes, restart, start, run, state, entered_at)
       VALUES ($1, $2, 'pod', $3, $4, 1, $5, 1, '1g.10gb', 'busybox', 1, '[]', '[]', '[]', 'always', 1, 1, 'stopped', now())`,
      [podId, podName, teamId, randomUUID(), gpuaasId],
    );
    await this.startRun(podId, 1, gpuaasId);
    return { podId, podName, teamId };
  }

  async startRun(podId: string, run: number, gpuaasId = '1'): Promise<void> {
    await this.query('INSERT INTO pod_run (pod_id, run, gpuaas_id) VALUES ($1, $2, $3)', [podId, run, gpuaasId]);
  }

  async endRun(podId: string, run: number): Promise<void> {
    this.engines.run(podId, run).hasEnded = true;
    await this.query('UPDATE pod_run SET ended_at = now() WHERE pod_id = $1 AND run = $2', [podId, run]);
  }

  /** Writes lines in one whole second, as some engines tell it, or now. */
  write(podId: string, messages: readonly string[], { run = 1, at = new Date(), isCut = false } = {}): void {
    const timestamp = `${at.toISOString().slice(0, 19)}Z`;
    for (const message of messages)
      this.engines.run(podId, run).lines.push({ timestamp, stream: 'stdout', message, isCut });
  }

  logs(asked: ReadPodLogs, caller: Partial<UserCaller>): Promise<PodLogPage> {
    return this.ask(podLogs.read, asked, contextOf(caller));
  }

  async messages(pod: WrittenPod, asked: ReadPodLogs = {}): Promise<string[]> {
    const { data } = await this.logs(
      { pod_name: pod.podName, order: 'asc', limit: 1000, ...asked },
      memberOf(pod.teamId),
    );
    return data.map(({ message }) => message);
  }

  async isRead(podId: string, run: number): Promise<boolean> {
    const [row] = await this.query<{ is_log_read: boolean }>(
      'SELECT is_log_read FROM pod_run WHERE pod_id = $1 AND run = $2',
      [podId, run],
    );
    return row?.is_log_read ?? false;
  }
}
