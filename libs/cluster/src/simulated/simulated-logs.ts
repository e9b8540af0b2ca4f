import { setTimeout as delay } from 'node:timers/promises';
import { ClusterError } from '../cluster-error.js';
import type { ObjectRef, PodSlice } from '../objects.js';
import type { LogBatch, LogLine } from '../observations.js';
import type { Scenario } from './scenario.js';
import { tables, type SimulatedStore } from './simulated-store.js';

const everyMs = 1_000;
/** Lines are read when they are this old, so that none comes in between those that were read. */
const settleMs = 300;
const pollMs = 400;
const perBatch = 500;

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

/** Where a reader is: instant, whether the line was added by a door (1) or written by the process (0), and its number there. */
interface Position {
  readonly ms: number;
  readonly source: 0 | 1;
  readonly no: number;
}

interface Placed extends Position {
  readonly line: LogLine;
}

/** The log of a run, batch after batch, until all is read or the signal is aborted. */
export async function* readSimulatedLogs(
  store: SimulatedStore,
  cluster: string,
  ref: ObjectRef,
  after: string | null,
  signal: AbortSignal,
  find: () => Promise<LoggedRun | undefined>,
): AsyncGenerator<LogBatch> {
  let position = readCursor(after);
  while (!signal.aborted) {
    const run = await find();
    if (!run) throw new ClusterError('not_found', 'The run is gone, and its log with it.');
    const untilMs = run.nowMs - settleMs;
    const added = await addedLines(store, cluster, ref, position, untilMs);
    const placed = [...writtenLines(run, position, untilMs), ...added].toSorted(byPosition).slice(0, perBatch);
    const hasEnded = run.endsMs !== null && run.endsMs <= untilMs;
    position = placed.at(-1) ?? position;
    const isComplete = hasEnded && placed.length < perBatch;
    if (placed.length > 0 || isComplete) yield { lines: placed.map(({ line }) => line), cursor: cursorOf(position), isComplete };
    if (isComplete) return;
    if (placed.length < perBatch) await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

async function addedLines(
  store: SimulatedStore,
  cluster: string,
  { id, run }: ObjectRef,
  position: Position,
  untilMs: number,
): Promise<Placed[]> {
  const rows = await store.query<{ no: string; ms: string; message: string }>(
    `SELECT no, (extract(epoch FROM at) * 1000)::bigint AS ms, message FROM ${tables.line}
     WHERE cluster = $1 AND id = $2 AND run = $3 AND at >= to_timestamp($4::float8 / 1000) AND at <= to_timestamp($5::float8 / 1000)
     ORDER BY at, no LIMIT ${perBatch + 1}`,
    [cluster, id, run, Math.max(0, position.ms), untilMs],
  );
  return rows
    .map(({ no, ms, message }) => ({ ms: Number(ms), source: 1 as const, no: Number(no), line: lineAt(Number(ms), message) }))
    .filter((placed) => byPosition(placed, position) > 0);
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
