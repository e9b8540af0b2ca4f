import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { FairSemaphore, withPatience } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import type { ObjectRef } from '../objects.js';
import type { LogBatch, LogLine } from '../observations.js';
import type { Containers } from './containers.js';
import type { Engine, EngineCall } from './engine.js';
import { LogAssembler } from './log-assembler.js';
import { LogSilence, SilentForGood } from './log-silence.js';
import { framesOf, FrameParser } from './multiplexed.js';
import type { Names } from './names.js';
import { isEnded, isUnstarted } from './pods.js';

/** Before the next look, after a stream that ended before its run. */
const lookMs = 200;
/** An engine that is well and has given nothing for so long has nothing more. */
const quietMs = 500;
/** Who has read a line that is no older has nothing older before them. */
const recentMs = 2_000;

/** Of a reader that has all: how often its engine is asked, while it gives nothing, whether it answers to anything. */
const answerMs = 1_000;
/** An engine that takes longer to answer may have stood still, and not have told what was written meanwhile. */
const promptMs = 500;
/** Podman reads half a gigabyte in about 12 s; a busy host takes longer. */
const wholeLogMs = 300_000;
/** Logs that are read a second time at once, to know whether a silent engine still looks for the place. */
const rereadAtOnce = 4;

type Lines = Pick<LogBatch, 'lines' | 'isCurrent'>;
/** The outcome of `work`, or null where it is not there within `patienceMs`. */
type Wait = <T>(work: Promise<T>, patienceMs: number) => Promise<T | null>;

/** Waits for an engine that gives nothing, in milliseconds. */
export interface LogWaits {
  /**
   * Where a log is not read from its start the engine looks for the place first, through all that a run has written:
   * after so long without an answer, whether it has found it is asked.
   */
  readonly seekMs: number;
  /** After so long without output, whether the container is still there. */
  readonly lookMs: number;
  /** An engine that answers to nothing for so long is not reachable. */
  readonly unreachableMs: number;
}

export const usualLogWaits: LogWaits = { seekMs: 5_000, lookMs: 60_000, unreachableMs: 15_000 };

interface Following {
  readonly call: EngineCall;
  readonly assembler: LogAssembler;
  readonly wait: Wait;
  /** For the first of the answer, and of the output. */
  readonly firstMs: number;
  /** See `Logs.#isWell`. */
  readonly isWell: (sinceMs: number, isCurrent: boolean) => AsyncGenerator<Lines, boolean>;
}

/** The logs of runs, read from the engine that keeps them. */
export class Logs {
  readonly #rereads = new FairSemaphore({ permits: rereadAtOnce });

  constructor(
    private readonly parts: { engine: Engine; containers: Containers; names: Names },
    private readonly waits: LogWaits,
  ) {}

  async *read(ref: ObjectRef, after: string | null, signal: AbortSignal): AsyncGenerator<LogBatch> {
    const name = this.parts.names.of(ref);
    let cursor = after;
    let id: string | null = null;
    for (;;) {
      const found = await this.parts.containers.find(name, signal);
      if (!found || isUnstarted(found) || found.Id !== (id ??= found.Id))
        throw new ClusterError('not_found', 'The run does not exist, or has not started.');
      const isOver = isEnded(found);
      // Each stream repeats what follows its cursor, also pieces of lines that were open.
      const assembler = new LogAssembler(cursor);
      for await (const { lines, isCurrent } of this.#lines(id, isOver ? null : name, assembler, signal)) {
        cursor = assembler.cursor;
        yield { lines, cursor, isComplete: false, isCurrent };
      }
      if (isOver) {
        const lines = assembler.flush(0, true);
        yield { lines, cursor: assembler.cursor, isComplete: true, isCurrent: true };
        return;
      }
      yield { lines: [], cursor: assembler.cursor, isComplete: false, isCurrent: false };
      await delay(lookMs, undefined, { signal });
    }
  }

  /**
   * What a container has written after the assembler's cursor. `name`: its log is followed, until the container of this
   * name is another one, has ended or is gone; null: until the end of what there is.
   */
  async *#lines(id: string, name: string | null, assembler: LogAssembler, signal: AbortSignal): AsyncGenerator<Lines> {
    const { engine } = this.parts;
    const { since } = assembler;
    const stop = new AbortController();
    const call: EngineCall = {
      method: 'GET',
      path: `/containers/${id}/logs`,
      query: { follow: name !== null, stdout: true, stderr: true, timestamps: true, ...(since !== null && { since }) },
      signal: AbortSignal.any([signal, stop.signal]),
    };
    const common = {
      ...{ call, assembler, firstMs: since === null ? quietMs : this.waits.seekMs },
      isWell: (sinceMs: number, isCurrent: boolean) => this.#isWell(sinceMs, isCurrent, call.signal),
    };
    try {
      if (name === null) {
        const wait: Wait = (work, patienceMs) => withPatience(work, patienceMs, null);
        yield* linesOf(await engine.stream(call, 'log'), { ...common, wait }, false);
        return;
      }
      const { opened } = await engine.follow(call);
      const { wait } = new LogSilence(this.waits.lookMs, () => this.#canWrite(name, id, signal));
      const wasAll = yield* this.#untilOpened(opened, { ...common, wait });
      yield* linesOf(await opened, { ...common, wait }, wasAll);
    } catch (error) {
      if (!(error instanceof SilentForGood)) throw error;
    } finally {
      stop.abort();
    }
  }

  /**
   * Whether the container is there and has not ended. A look that fails says nothing of it, unless the engine answers
   * to nothing.
   */
  async #canWrite(name: string, id: string, signal: AbortSignal): Promise<boolean> {
    const { engine, containers } = this.parts;
    const sinceMs = performance.now();
    try {
      const found = await containers.find(name, signal);
      return found?.Id === id && !isEnded(found);
    } catch {
      await engine.requireAnswer(sinceMs, this.waits.unreachableMs, signal);
      return true;
    }
  }

  /**
   * Whether an engine that gives nothing has answered to something since `sinceMs`, by `performance.now()`, or does so
   * at once. A reader that had all (`isCurrent`) has not where it does not; false once it has answered after all.
   * Throws `unreachable` where it does not.
   */
  async *#isWell(sinceMs: number, isCurrent: boolean, signal: AbortSignal): AsyncGenerator<Lines, boolean> {
    const answer = this.parts.engine.requireAnswer(sinceMs, this.waits.unreachableMs, signal);
    const isPrompt = answer.then(() => true);
    if (await withPatience(isPrompt, promptMs, false)) return true;
    if (isCurrent) yield { lines: [], isCurrent: false };
    await answer;
    return false;
  }

  /**
   * Until a log that is followed has an answer, which may be long: Podman sends even the head of it with the first
   * output after the cursor. Returns whether all has been given.
   */
  async *#untilOpened(opened: Promise<Readable>, following: Following): AsyncGenerator<Lines, boolean> {
    const { assembler, wait, firstMs, isWell } = following;
    let next: Promise<Readable | 'end'> = assembler.since === null ? opened : this.#openedOrEnd(opened, following);
    let isCurrent = false;
    for (let sinceMs = performance.now(); ; sinceMs = performance.now()) {
      const heard = await wait(next, isCurrent ? answerMs : firstMs);
      if (heard instanceof Readable) return isCurrent;
      if (heard === null && !(yield* isWell(sinceMs, isCurrent))) {
        isCurrent = false;
        continue;
      }
      if (isCurrent || (heard === null && next !== opened)) continue;
      next = opened;
      isCurrent = true;
      yield { lines: [], isCurrent };
    }
  }

  /**
   * The answer; `end` where there is none for long, and the log holds nothing after the cursor. An engine that is still
   * looking for the place is as silent as one that has found nothing there, so the same is asked for without following.
   */
  async #openedOrEnd(opened: Promise<Readable>, { call, assembler, firstMs }: Following): Promise<Readable | 'end'> {
    const first = await withPatience(opened, firstMs, null);
    if (first) return first;
    const stop = new AbortController();
    const signal = AbortSignal.any([call.signal, stop.signal]);
    const holdsMore = this.#rereads.run(() => this.#holdsMore({ ...call, signal }, assembler.cursor), { signal });
    try {
      return await Promise.race([opened, holdsMore.then<Readable | 'end'>((more) => (more ? opened : 'end'))]);
    } finally {
      stop.abort();
    }
  }

  /** Read no further than to the first piece that is new. */
  async #holdsMore(followed: EngineCall, cursor: string): Promise<boolean> {
    const assembler = new LogAssembler(cursor);
    const query = { ...followed.query, follow: false };
    const body = await this.parts.engine.stream({ ...followed, query, deadlineMs: wholeLogMs });
    for await (const frame of framesOf(body))
      if (assembler.take(frame, performance.now()).length > 0 || assembler.hasOpenLine) return true;
    return false;
  }
}

/**
 * Lines as they come, and whether they are all: with each chunk those that have come since, which are no more than a
 * socket and a stream hold (128 KiB). One chunk is read ahead, no more.
 */
async function* linesOf(body: Readable, following: Following, wasAll: boolean): AsyncGenerator<Lines> {
  const { assembler, wait, firstMs, isWell } = following;
  const parser = new FrameParser();
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const ahead = () => {
    const chunk = chunks.next();
    // It may fail while a batch is stored, and is waited for then.
    chunk.catch(() => undefined);
    return chunk;
  };
  let next = ahead();
  let isCurrent = wasAll;
  let untilQuietMs = firstMs;
  try {
    for (;;) {
      const sinceMs = performance.now();
      const patienceMs = Math.min(assembler.openForMs(performance.now()), isCurrent ? answerMs : untilQuietMs);
      const chunk = await wait(next, patienceMs);
      if (chunk?.done) return;
      if (chunk === null && !(yield* isWell(sinceMs, isCurrent))) {
        isCurrent = false;
        continue;
      }
      const frames = chunk ? [chunk.value, ...waitingIn(body)].flatMap((piece) => parser.push(piece)) : [];
      const lines = frames.flatMap((frame) => assembler.take(frame, performance.now()));
      lines.push(...assembler.flush(performance.now()));
      if (chunk) next = ahead();
      untilQuietMs = quietMs;
      const wasCurrent: boolean = isCurrent;
      isCurrent = !assembler.hasOpenLine && (chunk === null || isRecent(lines.at(-1)) || (wasCurrent && !lines.length));
      if (lines.length > 0 || isCurrent !== wasCurrent) yield { lines, isCurrent };
    }
  } finally {
    body.destroy();
  }
}

/** Node.js 26 gives what was pushed into a stream piece by piece, and Podman sends each line as a chunk of its own. */
function* waitingIn(body: Readable): Generator<Buffer> {
  for (let chunk: unknown; (chunk = body.read()) !== null;) yield chunk as Buffer;
}

function isRecent(line: LogLine | undefined): boolean {
  return line !== undefined && Date.now() - Date.parse(line.timestamp) < recentMs;
}
