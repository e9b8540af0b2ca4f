import { ClusterError, type ClusterDriver, type LogBatch } from '@atoll/cluster';
import { setTimeout as delay } from 'node:timers/promises';
import { backOffMs, type Turns } from '@atoll/waiting';
import { storedMessage } from './line-form.js';
import type { Claimed, LogClaims } from './log-claims.js';
import { msOfNs, nsOfInstant, type StoredLine } from './log-line.js';
import { LogRate, type LogRateLimits } from './log-rate.js';
import type { LogVolume } from './log-volume.js';
import type { LogWriter } from './log-writer.js';

const backOff = { firstMs: 500, maxMs: 30_000 };
/**
 * A batch of more lines waits for a turn of the event loop: at a start, a thousand readers find all that was written
 * while the service was away.
 */
const manyLines = 100;
/** A batch that comes so soon after the one before was stored has waited for that. */
const atOnceMs = 1_000;
/** A run whose container is not there yet is looked for as after so many failures: its image is being pulled. */
const absentFailures = 2;

export interface RunReaderParts {
  readonly driverOf: (gpuaasId: string) => Promise<ClusterDriver>;
  readonly writer: LogWriter;
  readonly claims: LogClaims;
  readonly volume: LogVolume;
  readonly turns: Turns;
  readonly limits: LogRateLimits;
  readonly now: () => number;
  /** Told of each failure; reading goes on. */
  readonly onTrouble: (error: unknown) => void;
}

/**
 * Reads one run of a pod from where it was read to. The position of a line follows from its timestamp and the lines
 * before it alone, so it is the same when the line is read again after a crash: as long as the clock of its host is not
 * ahead of the database by more than a minute.
 */
export class RunReader {
  /** As `SourceReading` has it. A claim does not say since when. */
  lateSinceMs = -Infinity;
  readonly #rate: LogRate;
  #cursor: string | null;
  #lastNs: bigint;

  constructor(
    private readonly claimed: Claimed,
    private readonly parts: RunReaderParts,
  ) {
    this.#rate = new LogRate(parts.limits);
    this.#cursor = claimed.cursor;
    this.#lastNs = claimed.lastNs;
  }

  /** Resolves when the run is read to its end, when another replica reads it, or after the signal. */
  async read(signal: AbortSignal): Promise<void> {
    const { onTrouble } = this.parts;
    for (let failures = 1; !signal.aborted; failures += 1) {
      const cursor = this.#cursor;
      try {
        if (await this.#readOn(signal)) return;
      } catch (error) {
        if (signal.aborted) return;
        if (await this.#isOver(error)) return;
        if (isAbsent(error)) {
          failures = absentFailures;
          this.lateSinceMs = Infinity;
        } else {
          this.lateSinceMs = Math.min(this.lateSinceMs, performance.now());
          onTrouble(error);
        }
      }
      if (this.#cursor !== cursor) failures = 1;
      await delay(backOffMs(backOff, failures), undefined, { signal }).catch(() => undefined);
    }
  }

  /** Whether there is nothing left to read here. */
  async #readOn(signal: AbortSignal): Promise<boolean> {
    const { podId, run, source } = this.claimed;
    const driver = await this.parts.driverOf(source.gpuaasId);
    let [heardMs, storedMs] = [-Infinity, -Infinity];
    for await (const batch of driver.readLogs({ kind: 'pod', id: podId, run }, this.#cursor, signal)) {
      const nowMs = performance.now();
      this.lateSinceMs = Math.min(this.lateSinceMs, nowMs < storedMs + atOnceMs ? heardMs : nowMs);
      heardMs = nowMs;
      if (batch.lines.length > 0 || batch.isComplete) {
        if (!(await this.#store(batch))) return true;
        if (batch.isComplete) return true;
      }
      storedMs = performance.now();
      if (batch.isCurrent) this.lateSinceMs = Infinity;
    }
    return false;
  }

  /** What is not stored is read once more, and has not been counted then. */
  async #store(batch: LogBatch): Promise<boolean> {
    const { counted } = this.#rate;
    try {
      return await this.#write(batch);
    } catch (error) {
      this.#rate.restore(counted);
      throw error;
    }
  }

  async #write({ lines, cursor, isComplete }: LogBatch): Promise<boolean> {
    const { podId, run, source } = this.claimed;
    if (lines.length > manyLines) await this.parts.turns.next(lines.length);
    const stored: StoredLine[] = [];
    const notices = new Set<string>();
    let lastNs = this.#lastNs;
    let writtenMs = 0;
    const isFull = this.parts.volume.isUsedUp(source.teamId);
    for (const { timestamp, stream, message, isCut } of lines) {
      const writtenNs = nsOfInstant(timestamp);
      writtenMs = msOfNs(writtenNs);
      lastNs = nextPosition(writtenNs, lastNs, this.parts.now());
      const text = storedMessage(message, isCut);
      // Not by its position, which stands still while the clock of its host is ahead, or after it was set back.
      const isTaken = this.#rate.takes(writtenMs, Buffer.byteLength(text));
      if (isTaken && !isFull) stored.push({ atNs: lastNs, sourceNo: source.no, stream, message: text });
    }
    const notice = this.#rate.notice(writtenMs, isComplete);
    if (notice !== undefined) notices.add(notice);
    const refusal = isFull && lines.length > 0 ? this.parts.volume.notice(podId) : undefined;
    if (refusal !== undefined) notices.add(refusal);
    const isKept = await this.parts.writer.write({
      ...{ source, podId, run, lines: stored, before: this.#cursor, cursor, lastNs, isComplete },
      ...{ notices: [...notices], platformLineIds: [] },
    });
    if (!isKept) return false;
    this.parts.volume.count(
      source.teamId,
      stored.reduce((bytes, { message }) => bytes + Buffer.byteLength(message), 0),
    );
    this.#cursor = cursor;
    this.#lastNs = lastNs;
    return true;
  }

  async #isOver(error: unknown): Promise<boolean> {
    const isGone = error instanceof ClusterError && (error.code === 'not_found' || error.code === 'not_supported');
    return isGone && this.parts.claims.isOver(this.claimed).catch(() => false);
  }
}

const aheadMs = 60_000;

/** After the last line, and not ahead of the database by more than clocks differ. */
function nextPosition(atNs: bigint, lastNs: bigint, nowMs: number): bigint {
  const latestNs = BigInt(Math.ceil(nowMs) + aheadMs) * 1_000_000n;
  const bounded = atNs > latestNs ? latestNs : atNs;
  return bounded > lastNs ? bounded : lastNs + 1n;
}

function isAbsent(error: unknown): boolean {
  return error instanceof ClusterError && error.code === 'not_found';
}
