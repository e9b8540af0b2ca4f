import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { withPatience } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import type { ObjectRef } from '../objects.js';
import type { LogBatch, LogLine } from '../observations.js';
import type { Containers } from './containers.js';
import type { Engine } from './engine.js';
import { LogAssembler } from './log-assembler.js';
import { FrameParser } from './multiplexed.js';
import type { Names } from './names.js';
import { isEnded, isUnstarted } from './pods.js';

/** Before the next look, after a stream that ended before its run. */
const lookMs = 200;
/** An engine that has given nothing for so long has nothing more. */
const quietMs = 500;
/** Where it does not begin at the start it looks for the place first, through all that a run has written. */
const seekMs = 5_000;
/** Who has read a line that is no older has nothing older before them. */
const recentMs = 2_000;

/** An engine whose answer has not begun is looked at so often, whether it answers to anything. */
const answerMs = 5_000;

type Lines = Pick<LogBatch, 'lines' | 'isCurrent'>;

/** The logs of runs, read from the engine that keeps them. */
export class Logs {
  constructor(private readonly parts: { engine: Engine; containers: Containers; names: Names }) {}

  async *read(ref: ObjectRef, after: string | null, signal: AbortSignal): AsyncGenerator<LogBatch> {
    const { containers, names } = this.parts;
    let cursor = after;
    for (;;) {
      const found = await containers.find(names.of(ref), signal);
      if (!found || isUnstarted(found))
        throw new ClusterError('not_found', 'The run does not exist, or has not started.');
      const isOver = isEnded(found);
      // Each stream repeats what follows its cursor, also pieces of lines that were open.
      const assembler = new LogAssembler(cursor);
      for await (const { lines, isCurrent } of this.#lines(found.Id, !isOver, assembler, signal)) {
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
   * What a container has written after the assembler's cursor. A log that is followed may have no answer yet: Podman
   * sends even the head of it with the first output.
   */
  async *#lines(id: string, isFollowed: boolean, assembler: LogAssembler, signal: AbortSignal): AsyncGenerator<Lines> {
    const { engine } = this.parts;
    const { since } = assembler;
    const stop = new AbortController();
    const call = {
      method: 'GET',
      path: `/containers/${id}/logs`,
      query: { follow: isFollowed, stdout: true, stderr: true, timestamps: true, ...(since !== null && { since }) },
      signal: AbortSignal.any([signal, stop.signal]),
    } as const;
    try {
      if (!isFollowed) {
        yield* linesOf(await engine.stream(call, 'log'), assembler, false);
        return;
      }
      const { opened } = await engine.follow(call);
      let isCurrent = false;
      let answeredAtMs = performance.now();
      while ((await withPatience(opened, isCurrent ? answerMs : patienceOf(assembler), null)) === null) {
        await engine.requireAnswer(answeredAtMs, signal);
        answeredAtMs = performance.now();
        if (!isCurrent) yield { lines: [], isCurrent: true };
        isCurrent = true;
      }
      yield* linesOf(await opened, assembler, isCurrent);
    } finally {
      stop.abort();
    }
  }
}

/**
 * Lines as they come, and whether they are all: with each chunk those that have come since, which are no more than a
 * socket and a stream hold (128 KiB). One chunk is read ahead, no more.
 */
async function* linesOf(body: Readable, assembler: LogAssembler, wasAll: boolean): AsyncGenerator<Lines> {
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
  let untilQuietMs = patienceOf(assembler);
  try {
    for (;;) {
      const patienceMs = Math.min(assembler.openForMs(Date.now()), isCurrent ? Infinity : untilQuietMs);
      const chunk = await withPatience(next, patienceMs, null);
      if (chunk?.done) return;
      const frames = chunk ? [chunk.value, ...waitingIn(body)].flatMap((piece) => parser.push(piece)) : [];
      const lines = frames.flatMap((frame) => assembler.take(frame, Date.now()));
      lines.push(...assembler.flush(Date.now()));
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

function patienceOf({ since }: LogAssembler): number {
  return since === null ? quietMs : seekMs;
}

function isRecent(line: LogLine | undefined): boolean {
  return line !== undefined && Date.now() - Date.parse(line.timestamp) < recentMs;
}
