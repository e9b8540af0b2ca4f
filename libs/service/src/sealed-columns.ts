import { SealBroken, UnknownSealKey, type Sealer } from '@atoll/seal';

/** A column that holds secrets sealed by libs/seal. Null and the empty text are no secret. */
export interface SealedColumn {
  /** In the schema of its service, or with the name of another one: `simulated_cluster.door`. */
  readonly table: string;
  readonly column: string;
  /** The columns that identify a row: as texts, they are the arguments of `purposeOf`. */
  readonly purposeBy: readonly string[];
  /** What the value of a row is sealed for. */
  readonly purposeOf: (...values: string[]) => string;
}

/** What became of one column. */
export interface Resealed {
  readonly table: string;
  readonly column: string;
  /** Values that are sealed under the first key now, and were not. */
  readonly resealed: number;
  /** Values that no configured key opens, and that stay as they are. */
  readonly unopened: readonly Unopened[];
}

interface Unopened {
  /** Its `purposeBy`, comma-separated. */
  readonly row: string;
  readonly reason: string;
}

interface Value {
  readonly sealed: string;
  /** Its `purposeBy`. */
  readonly key: string[];
}

interface Rows {
  query<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>;
}

const batch = 1_000;

/**
 * Seals under the first key what another one sealed, so that the others can be taken away, and opens what is sealed
 * under the first key already: where that does not open, there is another key under its id now. Beside services that
 * run: a value that one of them writes meanwhile is left as that wrote it. May be repeated, and stopped at any time. A
 * table that is not there has no values.
 */
export async function resealColumn(place: SealedColumn, sealer: Sealer, rows: Rows): Promise<Resealed> {
  const { table, column } = place;
  const [found] = await rows.query<{ exists: boolean }>('SELECT to_regclass($1) IS NOT NULL AS exists', [table]);
  if (!found?.exists) return { table, column, resealed: 0, unopened: [] };
  const others = await resealOthers(place, sealer, rows);
  const ofFirstKey = await unopenedOfFirstKey(place, sealer, rows);
  return { table, column, resealed: others.resealed, unopened: [...others.unopened, ...ofFirstKey] };
}

async function resealOthers(
  place: SealedColumn,
  sealer: Sealer,
  rows: Rows,
): Promise<Pick<Resealed, 'resealed' | 'unopened'>> {
  const { table, column } = place;
  const unopened: Unopened[] = [];
  const kept: string[] = [];
  let resealed = 0;
  for (;;) {
    const others = await rows.query<Value>(
      `SELECT ${column} AS sealed, ${keyOf(place)} AS key FROM ${table}
       WHERE ${column} <> '' AND NOT starts_with(${column}, $1) AND ${column} <> ALL ($2::text[]) LIMIT ${batch}`,
      [sealer.currentPrefix, kept],
    );
    if (others.length === 0) return { resealed, unopened };
    const pairs: [string, string][] = [];
    for (const { sealed, key } of others) {
      const purpose = place.purposeOf(...key);
      const opened = open(sealer, sealed, purpose);
      if (Buffer.isBuffer(opened)) {
        pairs.push([sealed, sealer.seal(opened, purpose)]);
      } else {
        kept.push(sealed);
        unopened.push({ row: key.join(', '), reason: opened.message });
      }
    }
    // A sealed text is like no other, so it names its row; one that was replaced meanwhile names none.
    const changed = await rows.query(
      `UPDATE ${table} SET ${column} = pair.next FROM unnest($1::text[], $2::text[]) AS pair (last, next)
       WHERE ${column} = pair.last RETURNING 1 AS changed`,
      [pairs.map(([last]) => last), pairs.map(([, next]) => next)],
    );
    resealed += changed.length;
  }
}

/** Reads the values that name the first key, each once, in portions in the order of their rows. */
async function unopenedOfFirstKey(place: SealedColumn, sealer: Sealer, rows: Rows): Promise<Unopened[]> {
  const { table, column, purposeBy, purposeOf } = place;
  const unopened: Unopened[] = [];
  const columns = purposeBy.join(', ');
  const bounds = purposeBy.map((_, at) => `$${at + 2}`).join(', ');
  for (let last: readonly string[] = []; ;) {
    const portion = await rows.query<Value>(
      `SELECT ${column} AS sealed, ${keyOf(place)} AS key FROM ${table}
       WHERE starts_with(${column}, $1) ${last.length > 0 ? `AND (${columns}) > (${bounds})` : ''}
       ORDER BY ${columns} LIMIT ${batch}`,
      [sealer.currentPrefix, ...last],
    );
    for (const { sealed, key } of portion) {
      const opened = open(sealer, sealed, purposeOf(...key));
      if (!Buffer.isBuffer(opened)) unopened.push({ row: key.join(', '), reason: opened.message });
    }
    if (portion.length < batch) return unopened;
    last = portion.at(-1)?.key ?? [];
  }
}

function keyOf({ purposeBy }: SealedColumn): string {
  return `ARRAY[${purposeBy.map((name) => `${name}::text`).join(', ')}]::text[]`;
}

function open(sealer: Sealer, sealed: string, purpose: string): Buffer | SealBroken | UnknownSealKey {
  try {
    return sealer.open(sealed, purpose);
  } catch (error) {
    if (error instanceof SealBroken || error instanceof UnknownSealKey) return error;
    throw error;
  }
}
