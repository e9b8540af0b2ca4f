import { databaseNowMs, numberList } from '@atoll/database';
import type { ConnectionChanges, Statements, Transactions } from '@atoll/database';
import type { EntityManager } from 'typeorm';
import {
  comparePositions,
  logStreams,
  msOfNs,
  type LogPosition,
  type SourceLines,
  type StoredLine,
} from './log-line.js';
import { LogPartitions } from './log-partitions.js';
import { LogStore, noneFailed, type LogPage, type LogQuery, type SaveRead } from './log-store.js';

export interface PostgresLogStoreOptions {
  readonly retentionDays: number;
  /** Lines that the first statement of a search looks at; each further one at four times as many, up to 8,000. */
  readonly searchStep?: number;
  /** For specs: in the place of the clock of the database. */
  readonly now?: () => number;
}

/** What one page may weigh; it then ends early. */
const mostBytes = 2 * 1024 * 1024;
const stepGrowth = 4;
const mostStep = 8_000;
/**
 * What a step of a search may compare, in bytes of lines × characters of the text: `strpos` compares as many where both
 * repeat one letter, 0.6 ns each. A text counts as 8 characters at least, since the lines have to be read.
 */
const mostSearchWork = 200_000_000;
const leastTextLength = 8;

interface LineRow {
  at_ns: string;
  source_no: number;
  stream: number | null;
  message: string;
}

/**
 * Matches of a search, and in `message` null for the last line that was looked at. `is_full`: the step ended by what
 * it may compare.
 */
type SearchRow = Omit<LineRow, 'message'> & { message: string | null; examined: number; is_full: boolean };

/** Lines in a table of the service's own, partitioned by day. */
export class PostgresLogStore extends LogStore {
  readonly #partitions: LogPartitions;
  readonly #searchStep: number;
  readonly #now: () => number;

  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    connections: ConnectionChanges,
    { retentionDays, searchStep = 2_000, now }: PostgresLogStoreOptions,
  ) {
    super();
    const nowMs = async () => now?.() ?? transactions.run(databaseNowMs);
    this.#partitions = new LogPartitions(transactions, connections, retentionDays, nowMs);
    this.#searchStep = searchStep;
    this.#now = now ?? (() => performance.now());
  }

  override async append<Group extends SourceLines>(
    groups: readonly Group[],
    save: SaveRead<Group>,
  ): Promise<ReadonlyMap<number, unknown>> {
    const oldestMs = await this.#partitions.oldestMs();
    const kept = groups.map(({ source, lines }) => ({
      source,
      lines: lines.filter(({ atNs }) => msOfNs(atNs) >= oldestMs),
    }));
    const instantsMs = kept.flatMap(({ lines }) => lines.map(({ atNs }) => msOfNs(atNs)));
    for (let isStored = false; !isStored;) {
      await this.#partitions.ensure(instantsMs);
      isStored = await this.transactions.run(async (manager) => {
        // They are known no more where its connection is new.
        if (!this.#partitions.has(instantsMs)) return false;
        const accepted = await save(manager, groups);
        await insertLines(
          manager,
          kept.filter(({ source }) => accepted.has(source.no)),
        );
        return true;
      });
    }
    return noneFailed;
  }

  override async read(query: LogQuery): Promise<LogPage> {
    if (query.search !== null) return this.#search(query, query.search);
    const rows = await this.statements.query<LineRow>(readStatement(query), [
      ...rangeOf(query, query.after),
      query.limit,
    ]);
    const lines = withinBytes(rows.map(lineOf));
    const isAll = rows.length < query.limit && lines.length === rows.length;
    return { lines, readTo: isAll ? null : (lines.at(-1) ?? null) };
  }

  override maintain(): Promise<void> {
    return this.#partitions.maintain();
  }

  /** In steps of so many lines and bytes, so that no statement takes long, however few lines match. */
  async #search(query: LogQuery, search: string): Promise<LogPage> {
    const endsAtMs = this.#now() + query.searchMs;
    const found: StoredLine[] = [];
    const stepBytes = Math.floor(mostSearchWork / Math.max(search.length, leastTextLength));
    let readTo = query.after;
    let step = this.#searchStep;
    do {
      const rows = await this.statements.query<SearchRow>(searchStatement(query), [
        ...rangeOf(query, readTo),
        step,
        search,
        query.limit - found.length,
        stepBytes,
      ]);
      const hits = rows.flatMap(({ message, ...row }) => (message === null ? [] : [lineOf({ ...row, message })]));
      found.push(...hits);
      const lines = withinBytes(found);
      if (lines.length === query.limit || lines.length < found.length) return { lines, readTo: lines.at(-1) ?? null };
      const last = rows.find(({ message }) => message === null);
      if (!last || (last.examined < step && !last.is_full)) return { lines: found, readTo: null };
      readTo = positionOf(last);
      if (!last.is_full) step = Math.min(step * stepGrowth, mostStep);
    } while (this.#now() < endsAtMs);
    return { lines: found, readTo };
  }
}

async function insertLines(manager: EntityManager, groups: readonly SourceLines[]): Promise<void> {
  const rows = groups.flatMap(({ source, lines }) => lines.map((line) => ({ ...line, scopeNo: source.scopeNo })));
  if (rows.length === 0) return;
  rows.sort((one, other) => one.scopeNo - other.scopeNo || comparePositions(one, other));
  await manager.query(
    `INSERT INTO log_line (scope_no, source_no, at_ns, stream, message)
     SELECT * FROM unnest($1::integer[], $2::integer[], $3::bigint[], $4::smallint[], $5::text[])`,
    [
      numberList(rows.map(({ scopeNo }) => scopeNo)),
      numberList(rows.map(({ sourceNo }) => sourceNo)),
      numberList(rows.map(({ atNs }) => atNs)),
      numberList(rows.map(({ stream }) => (stream === null ? null : logStreams.indexOf(stream)))),
      rows.map(({ message }) => message),
    ],
  );
}

/** $1 to $5: numbers of scopes or sources, from, before, and the position after which lines count. */
function rangeOf({ scopes, sources, sinceNs, untilNs, order }: LogQuery, after: LogPosition | null): unknown[] {
  const nos = (sources ?? scopes).map(({ no }) => no);
  if (order === 'desc') {
    const at = after ?? { atNs: untilNs, sourceNo: 0 };
    return [nos, sinceNs, at.atNs < untilNs ? at.atNs + 1n : untilNs, at.atNs, at.sourceNo];
  }
  const at = after ?? { atNs: sinceNs, sourceNo: 0 };
  return [nos, at.atNs > sinceNs ? at.atNs : sinceNs, untilNs, at.atNs, at.sourceNo];
}

type Direction = 'ASC' | 'DESC';
const columns = 'at_ns, source_no, stream, message';

/** The lines of each scope or source by its index, in order, at most $6 of each and of all. */
function linesInOrder(key: 'source_no' | 'scope_no', beyond: '<' | '>', direction: Direction): string {
  return `SELECT line.* FROM unnest($1::integer[]) AS wanted (no)
    CROSS JOIN LATERAL (
      SELECT ${columns} FROM log_line
      WHERE ${key} = wanted.no AND at_ns >= $2::bigint AND at_ns < $3::bigint AND (at_ns, source_no) ${beyond} ($4::bigint, $5::integer)
      ORDER BY at_ns ${direction}, source_no ${direction} LIMIT $6::integer
    ) AS line
    ORDER BY at_ns ${direction}, source_no ${direction} LIMIT $6::integer`;
}

function readStatement({ order, sources }: LogQuery): string {
  const key = sources ? 'source_no' : 'scope_no';
  return order === 'desc'
    ? readIn(linesInOrder(key, '<', 'DESC'), 'DESC')
    : readIn(linesInOrder(key, '>', 'ASC'), 'ASC');
}

/** The lines with which a page is full, and one more where there is one. */
function readIn(lines: string, direction: Direction): string {
  return `SELECT ${columns} FROM ${withBytes(lines, direction)}
    WHERE bytes - octet_length(message) <= ${mostBytes} ORDER BY at_ns ${direction}, source_no ${direction}`;
}

/** Adds a column, `bytes` unless named: the bytes of all lines up to this one. */
function withBytes(lines: string, direction: Direction, name = 'bytes'): string {
  return `(SELECT *, sum(octet_length(message)) OVER (
        ORDER BY at_ns ${direction}, source_no ${direction} ROWS UNBOUNDED PRECEDING
      ) AS ${name} FROM (${lines}) AS line) AS line`;
}

function searchStatement({ order, sources }: LogQuery): string {
  const key = sources ? 'source_no' : 'scope_no';
  return order === 'desc'
    ? searchIn(linesInOrder(key, '<', 'DESC'), 'DESC', 'ASC')
    : searchIn(linesInOrder(key, '>', 'ASC'), 'ASC', 'DESC');
}

/**
 * The first $8 matches among the lines up to the one that ends $9 bytes, no more of them than fill a page and one, and
 * the last of the lines that were looked at. `strpos` takes its text letter for letter. Of lines that do not match, no
 * text is kept.
 */
function searchIn(lines: string, direction: Direction, opposite: Direction): string {
  return `WITH examined AS MATERIALIZED (
      SELECT at_ns, source_no, stream, CASE WHEN strpos(message, $7::text) > 0 THEN message END AS message, bytes
      FROM ${withBytes(lines, direction)} WHERE bytes - octet_length(message) < $9::bigint
    ),
    hits AS (
      SELECT at_ns, source_no, stream, message, bytes
      FROM ${withBytes('SELECT * FROM examined WHERE message IS NOT NULL', direction, 'hit_bytes')}
      WHERE hit_bytes - octet_length(message) <= ${mostBytes}
      ORDER BY at_ns ${direction}, source_no ${direction} LIMIT $8::integer
    ),
    last AS (SELECT at_ns, source_no, stream, NULL::text, bytes FROM examined ORDER BY at_ns ${opposite}, source_no ${opposite} LIMIT 1)
    SELECT at_ns, source_no, stream, message, bytes >= $9::bigint AS is_full, (SELECT count(*)::integer FROM examined) AS examined
    FROM (SELECT * FROM hits UNION ALL SELECT * FROM last) AS every (at_ns, source_no, stream, message, bytes)
    ORDER BY at_ns ${direction}, source_no ${direction}, message NULLS LAST`;
}

function positionOf({ at_ns, source_no }: Pick<LineRow, 'at_ns' | 'source_no'>): LogPosition {
  return { atNs: BigInt(at_ns), sourceNo: source_no };
}

function lineOf(row: LineRow): StoredLine {
  return {
    ...positionOf(row),
    stream: row.stream === null ? null : (logStreams[row.stream] ?? null),
    message: row.message,
  };
}

function withinBytes(lines: StoredLine[]): StoredLine[] {
  let bytes = 0;
  const end = lines.findIndex(({ message }, at) => (bytes += Buffer.byteLength(message)) > mostBytes && at > 0);
  return end < 0 ? lines : lines.slice(0, end);
}
