import { messageOf, rootOf } from '@atoll/errors';
import type { ClusterDriver } from '@atoll/cluster';
import { Rounds, ThrottledLog, Turns } from '@atoll/waiting';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Clusters } from '../cluster/clusters.js';
import { PodsSettings } from '../pods-settings.js';
import { storedMessage } from './line-form.js';
import { LogClaims, type Claimed, type PlatformLine } from './log-claims.js';
import { nsOfMs } from './log-line.js';
import { LogStore } from './log-store.js';
import { LogVolume } from './log-volume.js';
import { LogWriter } from './log-writer.js';
import { RunReader, type RunReaderParts } from './run-reader.js';

const everyMs = 1_000;
const maintainMs = 600_000;
const volumeMs = 10_000;
/** Lines of the platform that were not stored are tried again after this, and take no place from others meanwhile. */
const restMs = 5_000;

interface Reading {
  readonly over: Promise<void>;
  /** Its own: what thousands of readers add to one signal and take off it is searched through each time. */
  readonly stop: AbortController;
  readonly reader: RunReader;
}

/**
 * Brings what pods write from their clusters into the store. One replica reads a run, the others take over what it read
 * within 15 s of its death, where it had got to.
 */
@Injectable()
export class LogCollector implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(LogCollector.name);
  private readonly reading = new Map<number, Reading>();
  /** Sources of the platform whose lines are on their way into the store. */
  private readonly storing = new Map<number, Promise<void>>();
  /** Those whose lines were not stored the last time. */
  private readonly restingUntilMs = new Map<number, number>();
  private readonly troubles = new ThrottledLog(({ message }) => this.logger.warn(message));
  /** By GPU service: those that are being looked up. */
  private readonly drivers = new Map<string, Promise<ClusterDriver>>();
  private readonly due = new Map<string, number>();
  private readonly turns = new Turns();
  private readonly rounds = new Rounds(() => this.go().then(() => everyMs));
  /** The database's clock less `performance.now()`, as of the last round. */
  private aheadOfUsMs = 0;
  private isFailing = false;
  private isStopping = false;

  constructor(
    private readonly store: LogStore,
    private readonly claims: LogClaims,
    private readonly writer: LogWriter,
    private readonly volume: LogVolume,
    private readonly clusters: Clusters,
    private readonly settings: PodsSettings,
  ) {}

  onApplicationBootstrap(): void {
    if (!this.settings.workers.isIdle) this.rounds.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    for (const { stop } of this.reading.values()) stop.abort();
    await this.rounds.stop();
    await this.idle();
    await this.claims.release().catch(() => undefined);
  }

  /**
   * One round: what is new is read from now on, and what is due by time is done. Throws the first failure, after all
   * parts had their turn.
   */
  async collect(): Promise<void> {
    const databaseMs = await this.claims.beAlive();
    this.aheadOfUsMs = databaseMs - performance.now();
    const reading = [...this.reading].map(([no, { reader }]) => ({ no, lateSinceMs: reader.lateSinceMs }));
    const parts = [
      () => this.claims.late.save(reading, databaseMs),
      () => this.readRuns(),
      () => this.storePlatformLines(),
    ];
    if (this.isDue('volume', volumeMs)) parts.push(() => this.volume.flush());
    if (this.isDue('maintenance', maintainMs)) parts.push(() => this.store.maintain());
    const failures: unknown[] = [];
    for (const part of parts) await part().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }

  /** Resolves when every run that is being read now has been read to its end. */
  async idle(): Promise<void> {
    await Promise.all([...[...this.reading.values()].map(({ over }) => over), ...this.storing.values()]);
  }

  private async go(): Promise<void> {
    if (this.isStopping) return;
    try {
      await this.collect();
      this.isFailing = false;
    } catch (error) {
      if (!this.isFailing) this.logger.warn(`Cannot collect logs; retrying: ${messageOf(rootOf(error))}`);
      this.isFailing = true;
    }
  }

  private async readRuns(): Promise<void> {
    for (const claimed of await this.claims.claimRuns([...this.reading.keys()])) this.start(claimed);
  }

  /** Each by itself: a team whose lines the store does not take holds up neither the lines of others nor the round. */
  private async storePlatformLines(): Promise<void> {
    const nowMs = performance.now();
    for (const [no, untilMs] of this.restingUntilMs) if (untilMs <= nowMs) this.restingUntilMs.delete(no);
    for (const claimed of await this.claims.claimPlatformLines([
      ...this.storing.keys(),
      ...this.restingUntilMs.keys(),
    ])) {
      const { no, gpuaasId } = claimed.source;
      const task = this.writePlatformLines(claimed)
        .catch((error: unknown) => {
          this.restingUntilMs.set(no, performance.now() + restMs);
          this.tell(gpuaasId, error);
        })
        .finally(() => this.storing.delete(no));
      this.storing.set(no, task);
    }
  }

  private start(claimed: Claimed): void {
    if (this.isStopping) return;
    const { no, gpuaasId } = claimed.source;
    const parts: RunReaderParts = {
      driverOf: (id) => this.driverOf(id),
      writer: this.writer,
      claims: this.claims,
      volume: this.volume,
      turns: this.turns,
      limits: { linesPerSecond: this.settings.logLinesPerSecond, bytesPerSecond: this.settings.logKibPerSecond * 1024 },
      now: () => performance.now() + this.aheadOfUsMs,
      onTrouble: (error) => this.tell(gpuaasId, error),
    };
    const stop = new AbortController();
    const reader = new RunReader(claimed, parts);
    const over = reader
      .read(stop.signal)
      .catch((error: unknown) => this.tell(gpuaasId, error))
      .finally(() => this.reading.delete(no));
    this.reading.set(no, { over, stop, reader });
  }

  /**
   * Looked up once for all who ask meanwhile: at a start, a thousand readers begin at once, and their statements would
   * leave no connection to others.
   */
  private driverOf(gpuaasId: string): Promise<ClusterDriver> {
    const known = this.drivers.get(gpuaasId);
    if (known) return known;
    const found = this.clusters.driverOf(gpuaasId).finally(() => this.drivers.delete(gpuaasId));
    this.drivers.set(gpuaasId, found);
    return found;
  }

  private async writePlatformLines({ written, ...claimed }: Claimed & { written: PlatformLine[] }): Promise<void> {
    let { lastNs } = claimed;
    const lines = written.map(({ at, message }) => {
      const atNs = nsOfMs(at.getTime());
      lastNs = atNs > lastNs ? atNs : lastNs + 1n;
      return {
        atNs: lastNs,
        sourceNo: claimed.source.no,
        stream: 'platform' as const,
        message: storedMessage(message, false),
      };
    });
    const cursor = written.at(-1)?.id ?? claimed.cursor;
    const platformLineIds = written.map(({ id }) => id);
    await this.writer.write({
      ...claimed,
      lines,
      before: claimed.cursor,
      cursor,
      lastNs,
      isComplete: false,
      notices: [],
      platformLineIds,
    });
  }

  private isDue(what: string, afterMs: number): boolean {
    if ((this.due.get(what) ?? 0) > performance.now()) return false;
    this.due.set(what, performance.now() + afterMs);
    return true;
  }

  /** Once a minute for each cluster: a thousand pods may have the same trouble. */
  private tell(gpuaasId: string, error: unknown): void {
    if (this.isStopping) return;
    const message = `Cannot collect logs of pods of GPU service ${gpuaasId}; retrying: ${messageOf(rootOf(error))}`;
    this.troubles.log(gpuaasId, { message });
  }
}
