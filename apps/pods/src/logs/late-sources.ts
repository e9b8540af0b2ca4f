import type { Statements } from '@atoll/database';

/** A source that is read here. */
export interface SourceReading {
  readonly no: number;
  /** Since when, by `performance.now()`, what it wrote may not be stored: Infinity where all that has come is. */
  readonly lateSinceMs: number;
}

/** A source that is late holds up those who follow several pods for so long, by the clock of the database. */
export const holdSeconds = 60;

/** Lines are on their way into the store for so long, without their source being called late. */
const storingMs = 1_000;
/** A process that has stood still for longer has not heard of what was written meanwhile. */
const stallMs = 2_000;
/** So long after a stall it has. */
const recoveryMs = 3_000;
const tickMs = 500;

/**
 * Waits for no row that is being stored: it is marked the next time, and where one that is late is not marked, how far
 * all are stays as it was.
 */
const saveStatement = `
  WITH free AS (
    SELECT no, no = ANY ($3::integer[]) AS is_late FROM log_source
    WHERE no = ANY ($3::integer[] || $4::integer[]) AND reader_id = $1::uuid FOR NO KEY UPDATE SKIP LOCKED
  ), marked AS (
    UPDATE log_source source SET
      read_to = CASE WHEN is_late THEN coalesce(source.read_to, reader.read_to) END,
      holds_until = CASE WHEN is_late THEN coalesce(holds_until, clock_timestamp() + interval '${holdSeconds} seconds') END
    FROM free, log_reader reader WHERE source.no = free.no AND reader.id = $1::uuid RETURNING source.no
  ), reader AS (
    UPDATE log_reader SET read_to = $2::timestamptz
    WHERE id = $1::uuid AND $2::timestamptz IS NOT NULL AND (SELECT count(*) FROM free WHERE is_late)
      = (SELECT count(*) FROM log_source WHERE no = ANY ($3::integer[]) AND reader_id = $1::uuid)
  )
  SELECT no FROM marked`;

/**
 * Writes down how far the sources are read that a replica reads. However many there are, that is one instant for all
 * that are current, and a row each where a source becomes late or current: a pod that writes nothing costs nothing.
 */
export class LateSources {
  /** Those that are late by their rows. */
  private readonly marked = new Set<number>();
  private readonly timer = setInterval(() => this.tick(), tickMs).unref();
  private tickedAtMs = performance.now();
  private stalledAtMs = -Infinity;

  constructor(
    private readonly statements: Statements,
    private readonly readerId: string,
  ) {}

  stop(): void {
    clearInterval(this.timer);
  }

  /** A claim marks the source: nobody knows what it wrote since it was read last. */
  claimed(no: number): void {
    this.marked.add(no);
  }

  /**
   * What is read now, when the database’s clock tells `databaseMs`, epoch milliseconds, or a little more. What has
   * become late is as far as all were the last time.
   */
  async save(reading: readonly SourceReading[], databaseMs: number): Promise<void> {
    const nowMs = this.tick();
    const isLate = ({ lateSinceMs }: SourceReading) => lateSinceMs < nowMs - storingMs;
    const read = new Set(reading.map(({ no }) => no));
    for (const no of this.marked) if (!read.has(no)) this.marked.delete(no);
    const late = reading.filter((source) => isLate(source) && !this.marked.has(source.no));
    const current = reading.filter((source) => !isLate(source) && this.marked.has(source.no));
    const rows = await this.statements.query<{ no: number }>(saveStatement, [
      this.readerId,
      nowMs < this.stalledAtMs + recoveryMs ? null : new Date(databaseMs - storingMs),
      late.map(({ no }) => no),
      current.map(({ no }) => no),
    ]);
    // Of both, those that were not marked are, and the other way round.
    for (const { no } of rows) if (!this.marked.delete(no)) this.marked.add(no);
  }

  private tick(): number {
    const nowMs = performance.now();
    if (nowMs > this.tickedAtMs + stallMs) this.stalledAtMs = nowMs;
    return (this.tickedAtMs = nowMs);
  }
}
