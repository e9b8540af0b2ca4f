import { StringDecoder } from 'node:string_decoder';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LineDiscipline } from './line-discipline.js';

/** The input from which a shell reads its lines, and its programs the rest. */
export interface ShellInput {
  /** null at the end of the input, and when the signal is aborted. */
  next(signal: AbortSignal): Promise<string | null>;
  pieces(signal: AbortSignal): AsyncIterable<Buffer>;
}

const longestLineBytes = 65_536;
/** Keys that a terminal processes before it yields to other work, and before it shows their echo. */
const keysOfTurn = 1_024;
const over: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Input without a terminal: read as far as somebody wants it. */
export class PipedInput implements ShellInput {
  #rest: Buffer = Buffer.alloc(0);
  #isEnded = false;
  #reading: Promise<IteratorResult<Buffer>> | null = null;
  readonly #source: AsyncIterator<Buffer>;

  constructor(source: Readable) {
    this.#source = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  async next(signal: AbortSignal): Promise<string | null> {
    for (;;) {
      const end = this.#rest.indexOf('\n');
      if (end >= 0 || (this.#rest.length > 0 && (this.#isEnded || this.#rest.length > longestLineBytes))) {
        const line = this.#rest.subarray(0, end < 0 ? undefined : end).toString('utf8');
        this.#rest = end < 0 ? Buffer.alloc(0) : this.#rest.subarray(end + 1);
        return line;
      }
      const piece = await this.#read(signal);
      if (piece) this.#rest = Buffer.concat([this.#rest, piece]);
      else if (signal.aborted || this.#rest.length === 0) return null;
    }
  }

  async *pieces(signal: AbortSignal): AsyncGenerator<Buffer> {
    if (this.#rest.length > 0) yield this.#rest;
    this.#rest = Buffer.alloc(0);
    for (let piece = await this.#read(signal); piece; piece = await this.#read(signal)) yield piece;
  }

  async #read(signal: AbortSignal): Promise<Buffer | null> {
    if (this.#isEnded || signal.aborted) return null;
    // What is read when the signal is aborted is there for the next reader.
    this.#reading ??= this.#source.next();
    const left = Promise.withResolvers<null>();
    const leave = (): void => left.resolve(null);
    signal.addEventListener('abort', leave);
    try {
      const result = await Promise.race([this.#reading.catch(() => over), left.promise]);
      if (result === null) return null;
      this.#reading = null;
      if (!result.done) return result.value;
      this.#isEnded = true;
      return null;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }
}

/** Input at a terminal: echoed and edited by lines while nobody reads it, too. */
export class TypedInput implements ShellInput {
  readonly #discipline: LineDiscipline;
  #echo = '';

  /** `show` resolves when its reader has room for more; `interrupt` is the key for it. */
  constructor(source: Readable, show: (text: string) => Promise<void>, interrupt: () => void) {
    this.#discipline = new LineDiscipline({ echo: (text) => (this.#echo += text), interrupt });
    void this.#pump(source, show).catch(() => this.#discipline.end());
  }

  next(signal: AbortSignal): Promise<string | null> {
    return this.#discipline.next(signal);
  }

  async *pieces(signal: AbortSignal): AsyncGenerator<Buffer> {
    for (let line = await this.next(signal); line !== null; line = await this.next(signal))
      yield Buffer.from(`${line}\n`);
  }

  async #pump(source: Readable, show: (text: string) => Promise<void>): Promise<void> {
    const decoder = new StringDecoder('utf8');
    for await (const chunk of source as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length; at += keysOfTurn) {
        if (at > 0) await nextTurn();
        this.#discipline.type(decoder.write(chunk.subarray(at, at + keysOfTurn)));
        const echo = this.#echo;
        this.#echo = '';
        if (echo) await show(echo);
      }
    }
    this.#discipline.end();
  }
}
