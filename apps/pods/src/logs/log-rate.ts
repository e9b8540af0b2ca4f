export interface LogRateLimits {
  readonly linesPerSecond: number;
  readonly bytesPerSecond: number;
}

/** A pause earns at most so many seconds of either limit. */
const burstSeconds = 10;
/** A line that is older than the latest one so far by more than this was written after the clock had been set back. */
const setBackMs = 60_000;
/** A pod that writes too much is told so at most once in this time. */
const noticeMs = 10_000;

export interface LogRateState {
  readonly lines: number;
  readonly bytes: number;
  readonly atMs: number;
  readonly dropped: number;
  readonly noticeAtMs: number;
}

/**
 * What a pod may write: two token buckets, of lines and of bytes. Their clock is that of the lines, so that what was
 * written while nobody read counts when it was written.
 */
export class LogRate {
  #lines: number;
  #bytes: number;
  #atMs = 0;
  #dropped = 0;
  #noticeAtMs = 0;

  constructor(private readonly limits: LogRateLimits) {
    this.#lines = limits.linesPerSecond * burstSeconds;
    this.#bytes = limits.bytesPerSecond * burstSeconds;
  }

  /** What has been counted so far; `restore` forgets what was counted since. */
  get counted(): LogRateState {
    return {
      lines: this.#lines,
      bytes: this.#bytes,
      atMs: this.#atMs,
      dropped: this.#dropped,
      noticeAtMs: this.#noticeAtMs,
    };
  }

  restore({ lines, bytes, atMs, dropped, noticeAtMs }: LogRateState): void {
    [this.#lines, this.#bytes, this.#atMs, this.#dropped, this.#noticeAtMs] = [lines, bytes, atMs, dropped, noticeAtMs];
  }

  /** Whether a line that was written at this instant, epoch milliseconds, may be stored; it is counted either way. */
  takes(atMs: number, bytes: number): boolean {
    this.#refill(atMs);
    const isTaken = this.#lines >= 1 && this.#bytes >= bytes;
    if (isTaken) {
      this.#lines -= 1;
      this.#bytes -= bytes;
    } else {
      this.#dropped += 1;
    }
    return isTaken;
  }

  /**
   * A sentence for the pod’s log about lines that were dropped since the last one; undefined where there is nothing to
   * say, or not yet.
   */
  notice(atMs: number, isLast: boolean): string | undefined {
    if (this.#dropped === 0 || (!isLast && atMs < this.#noticeAtMs)) return undefined;
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#noticeAtMs = atMs + noticeMs;
    const { linesPerSecond, bytesPerSecond } = this.limits;
    return (
      `${dropped} ${dropped === 1 ? 'line was' : 'lines were'} dropped: a pod may write ${linesPerSecond} lines and ` +
      `${Math.round(bytesPerSecond / 1024)} KiB a second.`
    );
  }

  #refill(atMs: number): void {
    const { linesPerSecond, bytesPerSecond } = this.limits;
    if (atMs < this.#atMs - setBackMs) [this.#atMs, this.#noticeAtMs] = [atMs, atMs];
    const seconds = Math.max(0, atMs - this.#atMs) / 1000;
    this.#atMs = Math.max(this.#atMs, atMs);
    this.#lines = Math.min(linesPerSecond * burstSeconds, this.#lines + seconds * linesPerSecond);
    this.#bytes = Math.min(bytesPerSecond * burstSeconds, this.#bytes + seconds * bytesPerSecond);
  }
}
