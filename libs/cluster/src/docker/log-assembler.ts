import type { LogLine } from '../observations.js';
import { LogCursor } from './log-cursor.js';
import { messageOf, parseLogPiece, type LogPiece } from './log-piece.js';
import type { Frame } from './multiplexed.js';

type Stream = Frame['stream'];

interface OpenLine {
  readonly timestamp: string;
  readonly pieces: LogPiece[];
  readonly beganAtMs: number;
  bytes: number;
}

const longestLineBytes = 16 * 1024;
/** An open line is given as far as it is after so long: a progress bar may not end for hours. */
const openLineMs = 5_000;

/**
 * Makes lines of the pieces that an engine cuts them into, and knows where to read on after those that it has given.
 * Each `nowMs` is by a clock that is never set.
 */
export class LogAssembler {
  readonly #position: LogCursor;
  readonly #open: Record<Stream, OpenLine | null> = { stdout: null, stderr: null };

  constructor(cursor: string | null) {
    this.#position = new LogCursor(cursor);
  }

  /** For the parameter `since` of the engine; null: from the start. */
  get since(): string | null {
    return this.#position.sinceParameter;
  }

  get cursor(): string {
    return this.#position.toString();
  }

  take({ stream, data }: Frame, nowMs: number): LogLine[] {
    const piece = parseLogPiece(data);
    if (!piece || this.#position.skips(stream, piece.second)) return [];
    if (this.#position.isCutting(stream)) return this.#dropRest(stream, piece);
    const line = (this.#open[stream] ??= { timestamp: piece.timestamp, pieces: [], beganAtMs: nowMs, bytes: 0 });
    line.pieces.push(piece);
    line.bytes += piece.data.length;
    const isCut = line.bytes > longestLineBytes;
    return isCut || piece.endsLine ? [this.#give(stream, line, isCut && !piece.endsLine)] : [];
  }

  #dropRest(stream: Stream, { second, endsLine }: LogPiece): LogLine[] {
    this.#position.setCutting(stream, !endsLine);
    this.#position.count(stream, [second], this.#oldestOpen());
    return [];
  }

  get hasOpenLine(): boolean {
    return this.#openLines().length > 0;
  }

  /** Milliseconds until `flush` has something to give; Infinity where no line is open. */
  openForMs(nowMs: number): number {
    const began = this.#openLines().map(([, { beganAtMs }]) => beganAtMs);
    return Math.max(0, Math.min(...began) + openLineMs - nowMs);
  }

  /** Lines that have been open for too long; all that are open where the log has ended. */
  flush(nowMs: number, isOver = false): LogLine[] {
    const due = this.#openLines().filter(([, { beganAtMs }]) => isOver || beganAtMs + openLineMs <= nowMs);
    return due.map(([stream, line]) => this.#give(stream, line, false));
  }

  #openLines(): [Stream, OpenLine][] {
    const lines = Object.entries(this.#open) as [Stream, OpenLine | null][];
    return lines.filter((entry): entry is [Stream, OpenLine] => entry[1] !== null);
  }

  /** The second of the oldest piece of any open line, which is not its first where the clock went back. */
  #oldestOpen(): number {
    return Math.min(...this.#openLines().flatMap(([, { pieces }]) => pieces.map(({ second }) => second)));
  }

  #give(stream: Stream, { timestamp, pieces }: OpenLine, goesOn: boolean): LogLine {
    this.#open[stream] = null;
    this.#position.setCutting(stream, goesOn);
    this.#position.count(
      stream,
      pieces.map(({ second }) => second),
      this.#oldestOpen(),
    );
    const { message, isCut } = messageOf(Buffer.concat(pieces.map(({ data }) => data)), longestLineBytes);
    return { timestamp: this.#position.rising(timestamp), stream, message, isCut };
  }
}
