import type { Transactions } from '@atoll/database';
import { isAppError } from '@atoll/errors';
import { ThrottledLog } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import { LokiClient, type LokiRange, type LokiStream, type PushedValue, type ReadValue } from './loki-client.js';
import {
  comparePositions,
  logStreams,
  nsOfMs,
  type LogPosition,
  type SourceLines,
  type StoredLine,
} from './log-line.js';
import { LogStore, type LogPage, type LogQuery, type SaveRead } from './log-store.js';
import { Silence } from './silence.js';

export interface LokiLogStoreOptions {
  readonly url: string;
  readonly retentionDays: number;
  /**
   * Lines that are asked for at once: an answer of Loki has at most 4 MiB between its parts, and a line up to 16 KiB.
   */
  readonly step?: number;
  /** How long all questions to Loki of one read may take, less than the deadline of a request. */
  readonly readMs?: number;
  /** How long Loki may take to store what is sent at once. */
  readonly pushMs?: number;
  readonly now?: () => number;
}

interface Answer {
  readonly lines: readonly StoredLine[];
  /** Up to where the range is read with it. */
  readonly endNs: bigint;
  /** It is all of the range then. */
  readonly isLast: boolean;
}

const dayMs = 86_400_000;
/**
 * Most reads want the lines nearest to the cursor: the first window is short, and each further one so many times as
 * long.
 */
const firstWindowNs = nsOfMs(3_600_000);
const windowGrowth = 6n;
/** Loki’s `max_query_length` is 30 days and one hour. */
const longestWindowNs = nsOfMs(30 * dayMs);
/** Loki’s `max_entries_limit_per_query`: as many lines of one nanosecond can be told apart. */
const mostOfOneInstant = 5_000;

/**
 * Lines in Grafana Loki: a tenant for each team, and a stream for each source, labelled `service`, `gpuaas_id`,
 * `pod_name` and `source`.
 *
 * Loki keeps a line once that comes twice in the same nanosecond of the same stream, and answers lines of one
 * nanosecond in no order: both are made good by positions, of which a source has one for each line.
 */
export class LokiLogStore extends LogStore {
  readonly #logger = new Logger(LokiLogStore.name);
  /** By team: the lines of each push may be refused. */
  readonly #refusals = new ThrottledLog(({ message }) => this.#logger.warn(message));
  readonly #silence = new Silence();
  readonly #client: LokiClient;
  readonly #retentionMs: number;
  readonly #readMs: number;
  readonly #step: number;
  readonly #now: () => number;

  constructor(
    private readonly transactions: Transactions,
    { url, retentionDays, step = 200, readMs = 3_000, pushMs = 5_000, now = Date.now }: LokiLogStoreOptions,
  ) {
    super();
    this.#client = new LokiClient(url, pushMs, this.#silence.heard);
    this.#readMs = readMs;
    this.#retentionMs = retentionDays * dayMs;
    this.#step = step;
    this.#now = now;
  }

  /** A tenant may be over a limit of its own, so that each team is pushed by itself. */
  override async append<Group extends SourceLines>(
    groups: readonly Group[],
    save: SaveRead<Group>,
  ): Promise<ReadonlyMap<number, unknown>> {
    const failed = new Map<number, Error>();
    const written = groups.filter(({ lines }) => lines.length > 0);
    const push = async (teamId: string, ofTeam: readonly Group[]): Promise<void> => {
      try {
        const refusal = await this.#client.push(teamId, ofTeam.map(streamOf));
        if (refusal !== undefined)
          this.#refusals.log(teamId, {
            message: `Loki refused lines of the team ${teamId}; they are lost: ${refusal}`,
          });
      } catch (error) {
        for (const { source } of ofTeam)
          failed.set(source.no, error instanceof Error ? error : new Error(String(error)));
      }
    };
    await Promise.all(
      [...Map.groupBy(written, ({ source }) => source.teamId)].map(([teamId, ofTeam]) => push(teamId, ofTeam)),
    );
    const stored = groups.filter(({ source }) => !failed.has(source.no));
    const [error] = failed.values();
    if (stored.length === 0 && error) throw error;
    await this.transactions.run((manager) => save(manager, stored));
    return failed;
  }

  override readOfTeam(teamId: string, queries: readonly LogQuery[]): Promise<LogPage[]> {
    return this.#silence.run(teamId, () => super.readOfTeam(teamId, queries));
  }

  override async read(query: LogQuery): Promise<LogPage> {
    const nowMs = this.#now();
    const oldestNs = nsOfMs(nowMs - this.#retentionMs);
    const found: StoredLine[] = [];
    let readTo: LogPosition | null = null;
    try {
      const answers = this.#answers(
        query,
        query.sinceNs > oldestNs ? query.sinceNs : oldestNs,
        AbortSignal.timeout(this.#readMs),
      );
      for await (const { lines, endNs, isLast } of answers) {
        found.push(...lines.filter((line) => isBeyond(line, query)));
        if (found.length >= query.limit)
          return { lines: found.slice(0, query.limit), readTo: found[query.limit - 1] ?? null };
        // No source has the number 0: of the instant itself nothing is read yet in ascending order, and everything in
        // descending order.
        readTo = { atNs: endNs, sourceNo: 0 };
        if (!isLast && query.search !== null && this.#now() >= nowMs + query.searchMs) return { lines: found, readTo };
      }
    } catch (error) {
      // A search that got anywhere goes on from there the next time.
      if (query.search === null || readTo === null || !isAppError(error)) throw error;
      return { lines: found, readTo };
    }
    return { lines: found, readTo: null };
  }

  /** Loki deletes by a retention of its own. */
  override maintain(): Promise<void> {
    return Promise.resolve();
  }

  /** All lines of the range in order, an answer of Loki at a time. */
  async *#answers(query: LogQuery, sinceNs: bigint, signal: AbortSignal): AsyncGenerator<Answer> {
    const isDescending = query.order === 'desc';
    for (const [startNs, endNs] of windowsOf(sinceNs, query)) {
      let [from, before] = [startNs, endNs];
      while (from < before) {
        const { lines, isAll } = await this.#ask(query, { startNs: from, endNs: before }, signal);
        const last = isAll ? undefined : lines.at(-1);
        if (isDescending) before = last ? last.atNs : from;
        else from = last ? last.atNs + 1n : before;
        yield isDescending
          ? { lines, endNs: before, isLast: before <= sinceNs }
          : { lines, endNs: from, isLast: from >= query.untilNs };
      }
    }
  }

  /**
   * The first lines of a range, and all that share an instant with the last of them: Loki cuts its answer anywhere
   * between those.
   */
  async #ask(
    query: LogQuery,
    range: Pick<LokiRange, 'startNs' | 'endNs'>,
    signal: AbortSignal,
  ): Promise<{ lines: StoredLine[]; isAll: boolean }> {
    const lines = await this.#range(query, { ...range, limit: this.#step }, signal);
    if (lines.length < this.#step) return { lines, isAll: true };
    const lastNs = lines.at(-1)?.atNs ?? range.startNs;
    const instant = { startNs: lastNs, endNs: lastNs + 1n, limit: mostOfOneInstant };
    const ofLast = await this.#range(query, instant, signal);
    return { lines: [...lines.filter(({ atNs }) => atNs !== lastNs), ...ofLast], isAll: false };
  }

  async #range(
    query: LogQuery,
    range: Omit<LokiRange, 'query' | 'direction'>,
    signal: AbortSignal,
  ): Promise<StoredLine[]> {
    const direction = query.order === 'desc' ? 'backward' : 'forward';
    const asked = { ...range, query: queryOf(query), direction } as const;
    const streams = await this.#client.range(query.teamId, asked, signal);
    return streams
      .flatMap(({ labels, values }) => values.map((value) => lineOf(labels, value)))
      .sort((one, other) => inOrder(query, one, other));
  }
}

function inOrder({ order }: LogQuery, one: LogPosition, other: LogPosition): number {
  return order === 'desc' ? comparePositions(other, one) : comparePositions(one, other);
}

function isBeyond(line: LogPosition, query: LogQuery): boolean {
  return query.after === null || inOrder(query, query.after, line) < 0;
}

/**
 * The range after the cursor, in pieces that Loki takes, in order. A search that goes on has them as long as if it had
 * not stopped.
 */
function* windowsOf(
  sinceNs: bigint,
  { untilNs, after, order, search }: LogQuery,
): Generator<[startNs: bigint, endNs: bigint]> {
  let from = order === 'asc' && after !== null && after.atNs > sinceNs ? after.atNs : sinceNs;
  let before = order === 'desc' && after !== null && after.atNs < untilNs ? after.atNs + 1n : untilNs;
  let windowNs = firstWindowNs;
  const grow = () => (windowNs = least(windowNs * windowGrowth, longestWindowNs));
  let searchedNs = search === null ? 0n : order === 'desc' ? untilNs - before : from - sinceNs;
  for (; searchedNs >= windowNs; grow()) searchedNs -= windowNs;
  for (; from < before; grow()) {
    const length = least(before - from, windowNs);
    yield order === 'desc' ? [before - length, before] : [from, from + length];
    if (order === 'desc') before -= length;
    else from += length;
  }
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

/** LogQL takes a text as Go writes it, and Go reads what JSON writes. */
function queryOf({ scopes, sources, search }: LogQuery): string {
  const matcher = sources
    ? `source=~"${sources.map(({ no }) => no).join('|')}"`
    : `gpuaas_id=~"${scopes.map(({ gpuaasId }) => gpuaasId).join('|')}"`;
  return `{service="atoll",${matcher}}${search === null ? '' : ` |= ${JSON.stringify(search)}`}`;
}

function streamOf({ source, lines }: SourceLines): LokiStream<PushedValue> {
  return {
    labels: { service: 'atoll', gpuaas_id: source.gpuaasId, pod_name: source.podName, source: String(source.no) },
    values: lines.map(({ atNs, stream, message }): PushedValue => [
      String(atNs),
      message,
      stream === null ? {} : { stream },
    ]),
  };
}

function lineOf(labels: Readonly<Record<string, string>>, [ns, message, beside]: ReadValue): StoredLine {
  const stream = logStreams.find((name) => name === beside?.structuredMetadata?.stream) ?? null;
  return { atNs: BigInt(ns), sourceNo: Number(labels.source), podName: labels.pod_name, stream, message };
}
