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
      const body = await this.#open(found.Id, { follow: !isOver, since: assembler.since }, signal);
      for await (const lines of linesOf(body, assembler)) {
        cursor = assembler.cursor;
        yield { lines, cursor, isComplete: false };
      }
      if (isOver) {
        const lines = assembler.flush(0, true);
        yield { lines, cursor: assembler.cursor, isComplete: true };
        return;
      }
      await delay(lookMs, undefined, { signal });
    }
  }

  #open(
    id: string,
    { follow, since }: { follow: boolean; since: string | null },
    signal: AbortSignal,
  ): Promise<Readable> {
    const query = { follow, stdout: true, stderr: true, timestamps: true, ...(since !== null && { since }) };
    return this.parts.engine.stream({ method: 'GET', path: `/containers/${id}/logs`, query, signal }, 'log');
  }
}

/** Lines as they come. One chunk is read ahead, no more. */
async function* linesOf(body: Readable, assembler: LogAssembler): AsyncGenerator<LogLine[]> {
  const parser = new FrameParser();
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let next = chunks.next();
  try {
    for (;;) {
      const chunk = await withPatience(next, assembler.openForMs(Date.now()), null);
      if (chunk?.done) return;
      const frames = chunk ? parser.push(chunk.value) : [];
      const lines = frames.flatMap((frame) => assembler.take(frame, Date.now()));
      lines.push(...assembler.flush(Date.now()));
      if (chunk) next = chunks.next();
      if (lines.length > 0) yield lines;
    }
  } finally {
    next.catch(() => undefined);
    body.destroy();
  }
}
