import type pg from 'pg';

/** How much is made. Every team holds about as many segments as every other, whatever the number of teams. */
export interface DataSize {
  teams: number;
  segmentsPerTeam: number;
}

/** A team that reports are asked of, as billing knows it. */
export interface AskedTeam {
  id: string;
  no: number;
}

export interface AskedTeams {
  /** With all months of history. */
  old: AskedTeam;
  /** With the last month alone. */
  young: AskedTeam;
}

export const historyMonths = 24;
const timelinesPerTeam = 60;
/** One in so many facts says that nothing is held any more. */
const pauseEvery = 16;

/** What each team holds: a third of its resources each. */
export const holdings = [
  { kind: 'gpuaas_pool', sku: 'gpu.A100-80GB.1g.10gb', unit: 'vgpu', poolId: 1 },
  { kind: 'gpuaas_pool', sku: 'gpu.A100-80GB.3g.40gb', unit: 'vgpu', poolId: 2 },
  { kind: 'shared_storage', sku: 'storage.shared', unit: 'GB', poolId: null },
] as const;

/** The first instant of a UTC month; `monthsBack` before the one that `ms` is in. */
export function startOfMonth(ms: number, monthsBack = 0): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - monthsBack);
}

/**
 * Fills billing's tables up to `endMs`, the start of a UTC month, with the segments that facts would have come to: each
 * timeline without a gap but where nothing is held, cut at the ends of UTC months, the last of it open. The same
 * numbers at each run. Reports read no facts, so there are none. Rows are written month after month over all teams,
 * which is the order in which they would have come.
 */
export async function generate(client: pg.Client, size: DataSize, asked: AskedTeams, endMs: number): Promise<void> {
  await client.query(`SET search_path TO billing; SET maintenance_work_mem TO '1GB'`);
  await addTeams(client, size.teams);
  const changes =
    Math.round(((size.segmentsPerTeam / timelinesPerTeam) * pauseEvery) / (pauseEvery - 1)) - (historyMonths - 2);
  if (changes < 2)
    throw new Error(`${size.segmentsPerTeam} segments a team are too few: each month end makes ${timelinesPerTeam}.`);
  const startMs = startOfMonth(endMs, historyMonths);
  const stepMs = Math.floor((endMs - startMs) / changes);
  const restoreIndexes = await dropIndexes(client, 'segment');
  for (let back = historyMonths; back > 0; back--) {
    const [fromMs, toMs] = [startOfMonth(endMs, back), startOfMonth(endMs, back - 1)];
    // A change is within a step of its place: those of the step before the month may still hold in it.
    const [first, last] = [fromMs, toMs].map((ms) => Math.floor((ms - startMs) / stepMs));
    await client.query(
      `INSERT INTO segment (start_ms, end_ms, quantity_nano, team_no, series_no, timeline_no)
       SELECT greatest(start_ms, ${fromMs}), least(end_ms, ${toMs}), units * 1000000000, team_no, series_no, timeline_no
       FROM (${heldBetween(startMs, stepMs)} FROM generate_series(${(first ?? 0) - 2}, ${Math.min(last ?? 0, changes - 2)}) change, held
         WHERE change >= 0 ${back > 1 ? `AND team_no <> ${asked.young.no}` : ''} OFFSET 0) AS piece
       WHERE units > 0 AND start_ms < ${toMs} AND end_ms > ${fromMs}`,
    );
  }
  await client.query(
    `INSERT INTO open_segment (start_ms, quantity_nano, team_no, series_no, timeline_no)
     SELECT start_ms, (units + 1) * 1000000000, team_no, series_no, timeline_no
     FROM (${heldBetween(startMs, stepMs)} FROM (VALUES (${changes - 1})) AS last (change), held) AS piece`,
  );
  await restoreIndexes();
  for (const table of ['team', 'workspace', 'series', 'timeline', 'segment', 'open_segment'])
    await client.query(`VACUUM (ANALYZE) ${table}`);
}

/**
 * What each timeline in `held` has from one change of its quantity to the next: 0 to 7 units, from a moment somewhere
 * in the change's step.
 */
function heldBetween(startMs: number, stepMs: number): string {
  const draw = (change: string, seed: number) =>
    `(hashint8extended(timeline_no * 1000000::bigint + ${change}, ${seed}) & 9007199254740991)`;
  const changedAt = (change: string) => `${startMs} + (${change}) * ${stepMs}::bigint + ${draw(change, 1)} % ${stepMs}`;
  return `SELECT ${changedAt('change')} AS start_ms, ${changedAt('change + 1')} AS end_ms,
    CASE WHEN ${draw('change', 2)} % ${pauseEvery} = 0 THEN 0 ELSE 1 + ${draw('change', 3)} % 7 END AS units, team_no, series_no, timeline_no`;
}

/**
 * The teams that are asked about are there; the others are rows of billing's own. Leaves the temporary table `held`:
 * the timelines of all teams.
 */
async function addTeams(client: pg.Client, teams: number): Promise<void> {
  const { rows } = await client.query<{ count: number }>(`SELECT count(*)::int AS count FROM team`);
  const others = teams - (rows[0]?.count ?? 0);
  if (others < 0) throw new Error(`There are ${-others} teams more than asked for.`);
  await client.query(`
    INSERT INTO team (id) SELECT md5('team ' || n)::uuid FROM generate_series(1, ${others}) n;
    INSERT INTO workspace (id, team_id, name) SELECT md5('workspace ' || n)::uuid, md5('team ' || n)::uuid, 'default' FROM generate_series(1, ${others}) n;
    INSERT INTO region (region_id) VALUES (1);`);
  const values = holdings
    .map(({ kind, sku, poolId }, place) => `(${place}, '${kind}', '${sku}', ${poolId ?? 'NULL::bigint'})`)
    .join();
  await client.query(`
    INSERT INTO series (team_no, workspace_id, kind, sku, region_id, pool_id)
      SELECT team.no, workspace.id, kind, sku, 1, pool_id
      FROM team JOIN workspace ON workspace.team_id = team.id, (VALUES ${values}) AS holding (place, kind, sku, pool_id) ORDER BY team.no, place;
    INSERT INTO timeline (team_no, resource_id, sku)
      SELECT team.no, kind || ':' || resource, sku
      FROM team, generate_series(1, ${timelinesPerTeam}) resource, (VALUES ${values}) AS holding (place, kind, sku, pool_id)
      WHERE resource % ${holdings.length} = place ORDER BY team.no, resource;
    CREATE TEMPORARY TABLE held AS
      SELECT timeline.no AS timeline_no, series.no AS series_no, team_no FROM timeline JOIN series USING (team_no, sku) ORDER BY timeline.no;
    ANALYZE held`);
}

/** Gives back what makes them again: at the end that is one sort each, and before it one look-up a row. */
async function dropIndexes(client: pg.Client, table: string): Promise<() => Promise<void>> {
  const { rows: constraints } = await client.query<{ name: string; definition: string }>(
    `SELECT conname AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conrelid = '${table}'::regclass AND contype = 'p'`,
  );
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `SELECT indexrelid::regclass AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index
     WHERE indrelid = '${table}'::regclass AND NOT indisprimary`,
  );
  for (const { name } of constraints) await client.query(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`);
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`);
  return async () => {
    for (const { name, definition } of constraints)
      await client.query(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`);
    for (const { definition } of indexes) await client.query(definition);
  };
}
