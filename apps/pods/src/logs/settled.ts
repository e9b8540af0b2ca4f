import type { Statements } from '@atoll/database';
import { aliveSeconds } from './log-claims.js';
import { holdSeconds } from './late-sources.js';
import { nsOfMs } from './log-line.js';

/**
 * What is written comes to its reader within this time, where nothing is late; and a second more until it is stored.
 */
const arrivalSeconds = 2;

/**
 * Readers that have stopped count until others have had time to take over: also after an outage of all of them.
 *
 * `OFFSET 0` has each of the few readers looked up in the index, however many sources there are.
 */
const readers = `
  SELECT min(reader.read_to) FROM (
    SELECT id, coalesce(read_to, alive_until - interval '${aliveSeconds} seconds') AS read_to FROM log_reader
  ) AS reader
  WHERE greatest(reader.read_to, (SELECT min(started_at) FROM log_reader WHERE alive_until > statement_timestamp()))
      > statement_timestamp() - interval '${holdSeconds} seconds'
    AND EXISTS (SELECT FROM log_source source WHERE source.reader_id = reader.id AND source.scope_no = ANY ($1::integer[]) OFFSET 0)`;

const epochMs = (instant: string) => `floor(extract(epoch FROM ${instant}) * 1000)::bigint`;

const settledQuery = `
  SELECT ${epochMs(`least(statement_timestamp() - interval '1 second', (${readers})) - interval '${arrivalSeconds} seconds'`)}::text AS read_to_ms,
    (SELECT min(greatest(last_ns + 1, ${epochMs(`read_to - interval '${arrivalSeconds} seconds'`)} * 1000000))::text
     FROM log_source WHERE scope_no = ANY ($1::integer[]) AND holds_until > statement_timestamp()) AS late_ns`;

/**
 * Up to where all that the sources of these scopes have written is stored, as far as it is known: who follows several
 * pods has one place in all of them, and what is stored behind it is not shown any more. A pod that writes nothing
 * counts by the last look at it. One whose cluster or reader stays away is waited for for a minute, and a minute more
 * by whoever reads on. Nanoseconds since 1970, by the clock of the database.
 */
export async function settledNs(statements: Statements, scopeNos: readonly number[]): Promise<bigint> {
  const [row] = await statements.query<{ read_to_ms: string; late_ns: string | null }>(settledQuery, [scopeNos]);
  if (!row) throw new Error('The database returned no time.');
  const readToNs = nsOfMs(Number(row.read_to_ms));
  const lateNs = row.late_ns === null ? readToNs : BigInt(row.late_ns);
  return lateNs < readToNs ? lateNs : readToNs;
}
