import { ClusterError } from '../cluster-error.js';
import type { Frame } from './multiplexed.js';

type Stream = Frame['stream'];
type Counts = Record<Stream, number>;

/** Docker stamps stdout and stderr apart, so a piece may stand in the log a little after younger ones. */
const overlapS = 2;

/**
 * Which pieces of a log have been taken. An engine gives the same pieces in the same order each time, without those
 * older than an instant that it is given, and its clock may be coarse (Podman's: a second). So the cursor holds an
 * instant, and for each stream the number of pieces taken that are not older; by stream, because a line of one may be
 * open while those of the other go on. Where the host's clock is put back by more than the overlap while nobody reads,
 * what is written until it has caught up is not read: the engine itself leaves it out.
 */
export class LogCursor {
  /** Unix seconds; 0: from the start. */
  #since = 0;
  readonly #taken: Counts = { stdout: 0, stderr: 0 };
  readonly #total: Counts = { stdout: 0, stderr: 0 };
  /** Streams within the rest of a line that was cut. */
  readonly #cutting: Record<Stream, boolean> = { stdout: false, stderr: false };
  #lastTimestamp = '';
  /** Pieces that are read again and left out. */
  readonly #skip: Counts = { stdout: 0, stderr: 0 };
  /** Pieces left out and taken, by second, complete from `#since` on once nothing is to be skipped. */
  readonly #seconds = new Map<number, Counts>();
  #newest = 0;

  constructor(text: string | null) {
    if (text === null) return;
    const [since, stdout, stderr, totalStdout, totalStderr, cutStdout, cutStderr, lastTimestamp] = parse(text);
    this.#since = since;
    Object.assign(this.#taken, { stdout, stderr });
    Object.assign(this.#total, { stdout: totalStdout, stderr: totalStderr });
    Object.assign(this.#cutting, { stdout: cutStdout === 1, stderr: cutStderr === 1 });
    Object.assign(this.#skip, this.#taken);
    this.#lastTimestamp = lastTimestamp;
  }

  toString(): string {
    const { stdout: cutStdout, stderr: cutStderr } = this.#cutting;
    const counts = [this.#taken, this.#total].flatMap(({ stdout, stderr }) => [stdout, stderr]);
    return JSON.stringify([this.#since, ...counts, Number(cutStdout), Number(cutStderr), this.#lastTimestamp]);
  }

  /** An engine skips lines that are older; Podman also those of the same time. */
  get sinceParameter(): string | null {
    return this.#since === 0 ? null : `${this.#since - 1}.999999999`;
  }

  /** Whether this piece, which was read again, had been taken. */
  skips(stream: Stream, second: number): boolean {
    if (this.#skip[stream] === 0) return false;
    this.#skip[stream] -= 1;
    this.#note(stream, second);
    return true;
  }

  isCutting(stream: Stream): boolean {
    return this.#cutting[stream];
  }

  setCutting(stream: Stream, isCutting: boolean): void {
    this.#cutting[stream] = isCutting;
  }

  /** The timestamp, or the last one where a clock has gone back. */
  rising(timestamp: string): string {
    if (timestamp > this.#lastTimestamp) this.#lastTimestamp = timestamp;
    return this.#lastTimestamp;
  }

  /** Pieces of these seconds have been taken; the oldest piece that has been read and not taken is of `oldestOpen`. */
  count(stream: Stream, seconds: readonly number[], oldestOpen: number): void {
    for (const second of seconds) this.#note(stream, second);
    this.#taken[stream] += seconds.length;
    this.#total[stream] += seconds.length;
    if (this.#skip.stdout + this.#skip.stderr === 0) this.#move(Math.min(...seconds), oldestOpen);
  }

  #note(stream: Stream, second: number): void {
    const counts = this.#seconds.get(second) ?? { stdout: 0, stderr: 0 };
    counts[stream] += 1;
    this.#seconds.set(second, counts);
    this.#newest = Math.max(this.#newest, second);
  }

  #move(second: number, oldestOpen: number): void {
    if (second < this.#newest - overlapS) {
      // The clock has gone back: until it has caught up no instant divides what has been taken from what has not.
      this.#since = 0;
      Object.assign(this.#taken, this.#total);
      return;
    }
    this.#since = Math.max(this.#since, Math.min(this.#newest - overlapS, oldestOpen));
    for (const old of this.#seconds.keys()) if (old < this.#since) this.#seconds.delete(old);
    const counts = [...this.#seconds.values()];
    for (const name of ['stdout', 'stderr'] as const)
      this.#taken[name] = counts.reduce((sum, count) => sum + count[name], 0);
  }
}

function parse(text: string): [number, number, number, number, number, number, number, string] {
  try {
    const values = JSON.parse(text) as unknown[];
    const isOurs =
      values.length === 8 && values.slice(0, 7).every(Number.isSafeInteger) && typeof values[7] === 'string';
    if (isOurs) return values as ReturnType<typeof parse>;
  } catch {
    // As below.
  }
  throw new ClusterError('invalid', 'The cursor was not made by this driver.');
}
