import { SealBroken, UnknownSealKey, type Sealer } from '@atoll/seal';

/** A column that holds secrets sealed by libs/seal. Null and the empty text are no secret. */
export interface SealedColumn {
  /** In the schema of its service, or with the name of another one: `simulated_cluster.door`. */
  readonly table: string;
  readonly column: string;
  /** Columns, as texts the arguments of `purposeOf`. */
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
  /** Values that no configured key opens, and that stay as they are: why, and of which rows. */
  readonly unopened: readonly { readonly row: string; readonly reason: string }[];
}

interface Rows {
  query<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>;
}

const batch = 1_000;

/**
 * Seals under the first key what another one sealed, so that the others can be taken away. Beside services that run: a
 * value that one of them writes meanwhile is left as that wrote it. May be repeated, and stopped at any time. A table
 * that is not there has no values.
 */
export async function resealColumn(
  { table, column, purposeBy, purposeOf }: SealedColumn,
  sealer: Sealer,
  rows: Rows,
): Promise<Resealed> {
  const unopened: Resealed['unopened'][number][] = [];
  const kept: string[] = [];
  let resealed = 0;
  const [found] = await rows.query<{ exists: boolean }>('SELECT to_regclass($1) IS NOT NULL AS exists', [table]);
  while (found?.exists) {
    const others = await rows.query<{ sealed: string; values: string[] }>(
      `SELECT ${column} AS sealed, ARRAY[${purposeBy.map((name) => `${name}::text`).join(', ')}]::text[] AS values FROM ${table}
       WHERE ${column} <> '' AND NOT starts_with(${column}, $1) AND ${column} <> ALL ($2::text[]) LIMIT ${batch}`,
      [sealer.currentPrefix, kept],
    );
    if (others.length === 0) break;
    const pairs: [string, string][] = [];
    for (const { sealed, values } of others) {
      const purpose = purposeOf(...values);
      try {
        pairs.push([sealed, sealer.seal(sealer.open(sealed, purpose), purpose)]);
      } catch (error) {
        if (!(error instanceof SealBroken || error instanceof UnknownSealKey)) throw error;
        kept.push(sealed);
        unopened.push({ row: values.join(', '), reason: error.message });
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
  return { table, column, resealed, unopened };
}
