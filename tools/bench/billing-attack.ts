import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { startOfMonth } from './billing-data.js';
import type { Installation } from './installation.js';

/** SKUs of the attacker: a year of them by hour is just below what a report may show. */
const skus = 22;
const skuStem = 'gpu.A100-80GB.1g.10gb.of-pool-';
const dayMs = 86_400_000;

export interface Load {
  seconds: number;
  /** Requests a second of all others together, half of them for a small report. */
  others: number;
  /** Reports of 20 MB a second. */
  attacks: number;
}

export interface LoadFigures {
  /** Milliseconds of each request of the others. */
  teams: number[];
  reports: number[];
  /** Of the others’ requests: how many were not answered 200. */
  failed: number;
  /** How many of the attacker’s reports were answered how. */
  attacker: Map<number, number>;
  attackerMiB: number;
  /** Largest resident memory that was seen. */
  residentMiB: number;
}

/** Paths of the requests: those of others are of several teams. */
export interface Paths {
  attack: string;
  teams: string[];
  reports: string[];
}

/** A team with a year of usage of many SKUs, which changes every few hours, and some teams with a little. */
export async function makeTeams(platform: Installation, client: pg.Client, others: number): Promise<Paths> {
  const endMs = startOfMonth(Date.now());
  const startMs = endMs - 365 * dayMs;
  const attacker = await makeTeam(platform, client, 'Attacker', skus, startMs, endMs);
  const teams: string[] = [];
  for (let n = 0; n < others; n++)
    teams.push(await makeTeam(platform, client, `Other ${n}`, 2, endMs - 31 * dayMs, endMs));
  for (let n = 0; n < skus; n++) {
    const valid_from = new Date(startMs).toISOString();
    await platform.send('POST', '/price', {
      sku: `${skuStem}${n}`,
      unit: 'unit',
      unit_price: `1.${n}7`,
      valid_from,
      force: true,
    });
  }
  const [start, month, end] = [startMs, endMs - 31 * dayMs, endMs].map((ms) => new Date(ms).toISOString().slice(0, 19));
  return {
    attack: `/team-billing/${attacker}/${start}/${end}/hourly/utc`,
    teams: teams.map((id) => `/team/${id}`),
    reports: teams.map((id) => `/team-billing/${id}/${month}/${end}/daily/utc`),
  };
}

async function makeTeam(
  platform: Installation,
  client: pg.Client,
  name: string,
  count: number,
  startMs: number,
  endMs: number,
): Promise<string> {
  const { id } = await platform.send<{ id: string }>('POST', '/team', { name });
  const stepMs = 5 * 3_600_000 + 1_234_567;
  await client.query(`
    SET search_path TO billing, public;
    INSERT INTO team (id) VALUES ('${id}') ON CONFLICT DO NOTHING;
    INSERT INTO series (team_no, workspace_id, kind, sku)
      SELECT no, id, 'vm', '${skuStem}' || n FROM team, generate_series(0, ${count - 1}) n WHERE id = '${id}';
    INSERT INTO timeline (team_no, resource_id, sku)
      SELECT no, 'vm:' || n, '${skuStem}' || n FROM team, generate_series(0, ${count - 1}) n WHERE id = '${id}';
    INSERT INTO segment (timeline_no, start_ms, end_ms, quantity_nano, team_no, series_no)
      SELECT timeline.no, at_ms, next_ms, (1 + (at_ms - ${startMs}) / ${stepMs} % 7) * 1000000000, team_no, series.no
      FROM timeline JOIN series USING (team_no, sku), (
        SELECT at_ms, lead(at_ms, 1, ${endMs}) OVER (ORDER BY at_ms) AS next_ms FROM (
          SELECT generate_series(${startMs}, ${endMs - 1}, ${stepMs}::bigint) AS at_ms
          UNION SELECT unnest('{${monthStarts(startMs, endMs).join()}}'::bigint[])
        ) AS change
      ) AS piece
      WHERE team_no = (SELECT no FROM team WHERE id = '${id}');
    ANALYZE segment; ANALYZE series; ANALYZE timeline`);
  return id;
}

/** Segments end with months. */
function monthStarts(startMs: number, endMs: number): number[] {
  const starts: number[] = [];
  for (let back = 1; startOfMonth(endMs, back) > startMs; back++) starts.push(startOfMonth(endMs, back));
  return starts;
}

/** Asks at the rates of `load`, whatever the answers take, as callers do who do not know of each other. */
export async function underLoad(platform: Installation, paths: Paths, load: Load): Promise<LoadFigures> {
  const figures: LoadFigures = {
    teams: [],
    reports: [],
    failed: 0,
    attacker: new Map(),
    attackerMiB: 0,
    residentMiB: 0,
  };
  const ofOthers = async (path: string, durationsMs: number[]) => {
    const startedAt = performance.now();
    const { status } = await platform.ask('GET', path);
    durationsMs.push(performance.now() - startedAt);
    if (status !== 200) figures.failed += 1;
  };
  const attack = async () => {
    const { status, body } = await platform.ask('GET', paths.attack);
    figures.attacker.set(status, (figures.attacker.get(status) ?? 0) + 1);
    if (status === 200) figures.attackerMiB = body.length / 1024 / 1024;
  };
  let turn = 0;
  const one = (all: readonly string[]) => all[turn % all.length] ?? '';
  const asking = [
    atRate(load.others / 2, load.seconds, () => ofOthers(one(paths.teams), figures.teams)),
    atRate(load.others / 2, load.seconds, () => ofOthers(one(paths.reports), figures.reports)),
    atRate(load.attacks, load.seconds, attack),
    atRate(4, load.seconds, async () => {
      turn += 1;
      figures.residentMiB = Math.max(figures.residentMiB, await platform.residentMiB());
    }),
  ];
  await Promise.all(asking);
  return figures;
}

async function atRate(perSecond: number, seconds: number, ask: () => Promise<void>): Promise<void> {
  const asked: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let n = 0; n < perSecond * seconds; n++) {
    await delay(Math.max(0, startedAt + (n * 1_000) / perSecond - performance.now()));
    asked.push(ask());
  }
  await Promise.all(asked);
}
