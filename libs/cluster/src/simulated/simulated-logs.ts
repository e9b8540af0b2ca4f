import { setTimeout as delay } from 'node:timers/promises';
import { Turns } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import { Batched } from './batched.js';
import type { ObjectRef, PodSlice } from '../objects.js';
import type { LogBatch, LogLine } from '../observations.js';
import type { Scenario } from './scenario.js';
import { tables, type SimulatedStore } from './simulated-store.js';

const everyMs = 1_000;
/** Lines are read when they are this old, so that none comes in between those that were read. */
const settleMs = 300;
const pollMs = 400;
const perBatch = 500;
/**
 * Of more lines, the batch is made in a turn of the event loop of its own: at a start, all readers are as far behind.
 */
const manyLines = 100;

/** Of a run, what its lines follow from. */
export interface LoggedRun {
  readonly podName: string;
  readonly image: string;
  readonly scenario: Scenario;
  readonly slices: readonly PodSlice[];
  readonly readyMs: number;
  readonly endsMs: number | null;
  readonly exitCode: number | null;
  readonly nowMs: number;
}

/**
 * Where a reader is: instant, whether the line was added by a door (1) or written by the process (0), and its number
 * there.
 */
interface Position {
  readonly ms: number;
  readonly source: 0 | 1;
  readonly no: number;
}

interface Placed extends Position {
  readonly line: LogLine;
}

/** What doors and shells have added to the log of a run, from a position on. */
interface AddedSince {
  readonly ref: ObjectRef;
  readonly fromMs: number;
  readonly untilMs: number;
}

interface AddedRow {
  readonly place: number;
  readonly no: string;
  readonly ms: string;
  readonly message: string;
}

/** The logs of the runs of a cluster. Those who read in this process look at the same instants, together. */
export class SimulatedLogs {
  readonly #runs: Batched<ObjectRef, LoggedRun | undefined>;
  readonly #added: Batched<AddedSince, readonly Placed[]>;
  readonly #turns = new Turns();

  constructor(
    store: SimulatedStore,
    cluster: string,
    runs: { logged(refs: readonly ObjectRef[]): Promise<(LoggedRun | undefined)[]> },
  ) {
    this.#runs = new Batched((refs) => runs.logged(refs));
    this.#added = new Batched<AddedSince, readonly Placed[]>((asked) => addedLines(store, cluster, asked));
  }

  /** The log of a run, batch after batch, until all is read or the signal is aborted. */
  async *read(ref: ObjectRef, after: string | null, signal: AbortSignal): AsyncGenerator<LogBatch> {
    let position = readCursor(after);
    let wasCurrent = false;
    while (!signal.aborted) {
      const run = await this.#runs.ask(ref);
      if (!run) throw new ClusterError('not_found', 'The run and its log no longer exist.');
      const untilMs = run.nowMs - settleMs;
      const added = await this.#addedAfter(ref, position, untilMs);
      if (untilMs - Math.max(position.ms, run.readyMs) > manyLines * everyMs) await this.#turns.next(manyLines);
      const placed = [...writtenLines(run, position, untilMs), ...added].toSorted(byPosition).slice(0, perBatch);
      const hasEnded = run.endsMs !== null && run.endsMs <= untilMs;
      position = placed.at(-1) ?? position;
      const isCurrent = placed.length < perBatch;
      const isComplete = hasEnded && isCurrent;
      if (placed.length > 0 || isComplete || isCurrent !== wasCurrent)
        yield { lines: placed.map(({ line }) => line), cursor: cursorOf(position), isComplete, isCurrent };
      if (isComplete) return;
      wasCurrent = isCurrent;
      if (isCurrent) await delay(pollMs - (Date.now() % pollMs), undefined, { signal }).catch(() => undefined);
    }
  }

  async #addedAfter(ref: ObjectRef, position: Position, untilMs: number): Promise<readonly Placed[]> {
    const placed = await this.#added.ask({ ref, fromMs: Math.max(0, position.ms), untilMs });
    return placed.filter((line) => byPosition(line, position) > 0);
  }
}

async function addedLines(store: SimulatedStore, cluster: string, asked: readonly AddedSince[]): Promise<Placed[][]> {
  const rows = await store.query<AddedRow>(
    `SELECT wanted.place::integer, line.no, (extract(epoch FROM line.at) * 1000)::bigint AS ms, line.message
     FROM unnest($2::text[], $3::integer[], $4::float8[], $5::float8[]) WITH ORDINALITY wanted (id, run, from_ms, until_ms, place)
     CROSS JOIN LATERAL (
       SELECT no, at, message FROM ${tables.line} WHERE cluster = $1 AND id = wanted.id AND run = wanted.run
         AND at >= to_timestamp(wanted.from_ms / 1000) AND at <= to_timestamp(wanted.until_ms / 1000)
       ORDER BY at, no LIMIT ${perBatch + 1}
     ) line ORDER BY wanted.place, line.at, line.no`,
    [
      cluster,
      asked.map(({ ref }) => ref.id),
      asked.map(({ ref }) => ref.run),
      asked.map(({ fromMs }) => fromMs),
      asked.map(({ untilMs }) => untilMs),
    ],
  );
  const placed: Placed[][] = asked.map(() => []);
  for (const { place, no, ms, message } of rows) {
    placed[place - 1]?.push({ ms: Number(ms), source: 1, no: Number(no), line: lineAt(Number(ms), message) });
  }
  return placed;
}

/** What the process of a run has written after the position: a line a second, and a last one at its end. */
function writtenLines(run: LoggedRun, position: Position, untilMs: number): Placed[] {
  const lastMs = Math.min(untilMs, run.endsMs ?? Infinity);
  const placed: Placed[] = [];
  const firstNo = Math.max(0, Math.floor((position.ms - run.readyMs) / everyMs));
  for (let no = firstNo; run.readyMs + no * everyMs <= lastMs && placed.length < perBatch; no += 1) {
    const ms = run.readyMs + no * everyMs;
    placed.push({ ms, source: 0, no, line: lineAt(ms, textOf(run, no)) });
  }
  if (run.endsMs !== null && run.endsMs <= untilMs && run.endsMs >= run.readyMs && placed.length < perBatch) {
    const no = Number.MAX_SAFE_INTEGER;
    placed.push({ ms: run.endsMs, source: 0, no, line: { ...lineAt(run.endsMs, lastWords(run)), stream: 'stderr' } });
  }
  return placed.filter((line) => byPosition(line, position) > 0);
}

function textOf({ podName, image, slices, scenario }: LoggedRun, no: number): string {
  if (no === 0) return `${podName}: started ${image}`;
  if (no === 1) {
    const held = slices.map(({ board, profile, nodeName }) => `${board} ${profile} on ${nodeName}`).join(', ');
    return `torch.cuda.device_count() = ${slices.length} (${held || 'no GPU'})`;
  }
  if (scenario === 'idle') return `waiting for work (${no} s)`;
  const step = no * 20;
  const loss = 0.35 + 8 * Math.exp(-step / 900) + 0.03 * Math.sin(step);
  const use = 82 + Math.round(12 * Math.abs(Math.sin(no)));
  return `step ${step} loss ${loss.toFixed(4)} lr ${(3e-4 * Math.exp(-step / 40_000)).toExponential(2)} gpu ${use}% tokens/s ${2_900 + ((no * 37) % 400)}`;
}

function lastWords({ exitCode, scenario }: LoggedRun): string {
  if (scenario === 'oom') return 'Killed';
  if (scenario === 'crash') return 'RuntimeError: CUDA error: an illegal memory access was encountered';
  return exitCode === 143 ? 'Received SIGTERM, shutting down' : `Process ended with code ${exitCode ?? 0}`;
}

function lineAt(ms: number, message: string): LogLine {
  return { timestamp: new Date(ms).toISOString(), stream: 'stdout', message, isCut: false };
}

function byPosition(one: Position, other: Position): number {
  return one.ms - other.ms || one.source - other.source || one.no - other.no;
}

function cursorOf({ ms, source, no }: Position): string {
  return `${ms}.${source}.${no}`;
}

function readCursor(text: string | null): Position {
  const [ms = -1, source = 0, no = -1] = (text ?? '').split('.').filter(Boolean).map(Number);
  return { ms, source: source === 1 ? 1 : 0, no };
}
