import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { runs } from '@atoll/testing';
import type { PodRun } from '../objects.js';
import type { LogBatch, LogLine } from '../observations.js';
import { codeOf, eventually, soon, type Installation, type Lack } from './cluster-under-test-fixture.js';

/** More than one read of the engine's answer holds, and many in one instant. */
const many = 20_000;

export function logLaws(here: () => Installation, lacks: readonly Lack[]): void {
  if (!lacks.includes('printed lines')) printedLaws(here, lacks);

  it('has no log of a run that does not exist', async () => {
    const reading = here().driver.readLogs(here().ref('pod'), null, soon())[Symbol.asyncIterator]();
    expect(await codeOf(reading.next())).toBe('not_found');
  });

  it('ends without an error when its reader gives up', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const stop = new AbortController();
    const reading = here().driver.readLogs(pod.ref, null, stop.signal)[Symbol.asyncIterator]();
    const next = reading.next();
    stop.abort();
    expect((await next).done).toBe(true);
    await here().remove(pod);
  });
}

function printedLaws(here: () => Installation, lacks: readonly Lack[]): void {
  /** Whether what is written as fast as can be may be read meanwhile. */
  const bursts = !lacks.includes('followed bursts');
  const readable = bursts ? 'running' : 'ended';

  it('reads everything that a run wrote, in order, by stream, and says when that is all', async () => {
    const pod = here().pod(here().programs.prints(many));
    await here().start(pod, 'ended');
    const lines = await here().readAll(pod);
    expectAll(lines);
    expect(await here().readAll(pod, await lastCursor(here(), pod))).toEqual([]);
    await here().remove(pod);
  });

  it('follows a run while it writes, and ends after it', async () => {
    const count = bursts ? 2_000 : 200;
    const pod = here().pod(here().programs.prints(count, bursts ? undefined : 0.01));
    await here().start(pod);
    expectAll(await here().readAll(pod), count);
    await here().remove(pod);
  });

  it('has all of a run that writes nothing, and ends after it', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const reading = here().driver.readLogs(pod.ref, null, soon())[Symbol.asyncIterator]();
    expect((await reading.next()).value).toMatchObject({ lines: [], isCurrent: true, isComplete: false });
    await here().driver.stopPod(pod.ref, 20_000, soon());
    const rest: LogBatch[] = [];
    for (let next = await reading.next(); !next.done; next = await reading.next()) rest.push(next.value);
    expect(rest.at(-1)).toMatchObject({ isComplete: true });
    await here().remove(pod);
  });

  it('law: loses and doubles no line, wherever readers stop and others go on', async () => {
    const pod = here().pod(here().programs.prints(many));
    await here().start(pod, readable);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(12), { minLength: 1, maxLength: 8 }), async (batches) => {
        const lines: KeptLine[] = [];
        let cursor: string | null = null;
        for (const count of batches) cursor = (await readSome(here(), pod, cursor, count, lines)) ?? cursor;
        expectAll([...lines, ...(await here().readAll(pod, cursor))]);
      }),
      runs(6),
    );
    await here().remove(pod);
  });

  it('loses and doubles no line when what answers is killed and comes back', async () => {
    const pod = here().pod(here().programs.prints(many));
    await here().start(pod, readable);
    const lines: KeptLine[] = [];
    let cursor: string | null = null;
    for (let times = 0; times < 3; times += 1) {
      const reading: Promise<string | null> = readSome(here(), pod, cursor, 3, lines).catch(() => null);
      await here().cluster.crash();
      cursor = (await reading) ?? lines.at(-1)?.cursor ?? cursor;
    }
    const rest = await eventually(async () => {
      const found: KeptLine[] = [];
      await readSome(here(), pod, cursor, Infinity, found);
      return found;
    });
    if (lacks.includes('lines of a crash')) {
      const kept = (await here().readAll(pod)).map(({ message }) => message);
      expect([...lines, ...rest].map(({ message }) => message)).toEqual(kept);
    } else {
      expectAll([...lines, ...rest]);
    }
    await here().remove(pod);
  });
}

/** A line with the cursor after its batch, as a transaction would keep them. */
type KeptLine = LogLine & { readonly cursor: string };

/**
 * Reads so many batches into `into`, each line with the cursor after its batch, as a transaction would keep them; the
 * last cursor.
 */
async function readSome(
  here: Installation,
  pod: PodRun,
  after: string | null,
  batches: number,
  into: LogLine[],
): Promise<string | null> {
  let cursor = after;
  let left = batches;
  if (left === 0) return cursor;
  for await (const batch of here.driver.readLogs(pod.ref, after, soon())) {
    cursor = batch.cursor;
    into.push(...batch.lines.map((line) => ({ ...line, cursor: batch.cursor })));
    left -= 1;
    if (left === 0 || batch.isComplete) break;
  }
  return cursor;
}

async function lastCursor(here: Installation, pod: PodRun): Promise<string> {
  let cursor = '';
  for await (const batch of here.driver.readLogs(pod.ref, null, soon())) cursor = batch.cursor;
  return cursor;
}

/** Even lines come by stdout and odd ones by stderr, each in order; which stream is first the cluster may not know. */
function expectAll(lines: readonly LogLine[], count = many): void {
  for (const [stream, parity] of [
    ['stdout', 0],
    ['stderr', 1],
  ] as const) {
    const own = lines.filter((line) => (line.stream ?? stream) === stream).map(({ message }) => message);
    const numbers = own
      .map((message) => Number(message.replace('line ', '')))
      .filter((number) => number % 2 === parity);
    const expected = Array.from({ length: Math.ceil((count - parity) / 2) }, (_, index) => index * 2 + parity);
    const firstWrong = numbers.findIndex((number, index) => number !== expected[index]);
    expect({
      stream,
      read: numbers.length,
      firstWrong: firstWrong < 0 ? null : numbers.slice(firstWrong - 2, firstWrong + 3),
    }).toEqual({
      stream,
      read: expected.length,
      firstWrong: null,
    });
  }
  const stamps = lines.map(({ timestamp }) => timestamp);
  expect(stamps).toEqual([...stamps].sort());
}
