import { join } from 'node:path';
import type pg from 'pg';
import { startOfMonth, type AskedTeam, type AskedTeams } from './billing-data.js';
import { Installation } from './installation.js';
import { mediansInTurn } from './measure.js';
import { StatementRecorder, type RecordedStatement } from './statement-recorder.js';
import { withClient } from './with-client.js';

/** A database that has its data. */
export interface BillingDatabase {
  url: string;
  adminKey: string;
  asked: AskedTeams;
  /** Up to where it has history: the start of a UTC month. */
  endMs: number;
}

interface ReportFigure {
  question: Question;
  zone: Zone;
  httpMs: number;
  /** Of all statements that the product ran for it, one after the other, from this process. */
  sqlMs: number;
  statements: number;
  answerBytes: number;
}

export interface ReportFigures {
  reports: ReportFigure[];
  /** The same questions in UTC, of a team of the same size, where there are few other teams. */
  small: ReadonlyMap<Question, number>;
  /** The same month in UTC, of a team that has no other. */
  young: ReadonlyMap<Question, number>;
}

const monthQuestions = ['month by day', 'month by hour'] as const;
export const questions = [...monthQuestions, 'year by month', 'year by hour'] as const;
type Question = (typeof questions)[number];

const spans: Record<Question, { months: number; interval: string }> = {
  'month by day': { months: 1, interval: 'daily' },
  'month by hour': { months: 1, interval: 'hourly' },
  'year by month': { months: 12, interval: 'monthly' },
  'year by hour': { months: 12, interval: 'hourly' },
};

const zones = { UTC: 'utc', 'Asia/Kathmandu': 'local' } as const;
type Zone = keyof typeof zones;
const zoneNames = Object.keys(zones) as Zone[];

interface Report {
  total_cost: string;
  intervals: { items: { unit_hours: number }[] }[];
}

function pathOf(team: AskedTeam, question: Question, zone: Zone, endMs: number): string {
  const { months, interval } = spans[question];
  const [start, end] = [startOfMonth(endMs, months), endMs].map((ms) => new Date(ms).toISOString().slice(0, 19));
  return `/team-billing/${team.id}/${start}/${end}/${interval}/${zones[zone]}`;
}

/**
 * Every question in both zones, over HTTP and as the SQL that the product runs for it, and beside it what should make
 * no difference; all in turn.
 */
export async function measureReports(
  large: BillingDatabase,
  small: BillingDatabase,
  folder: string,
  rounds: number,
): Promise<ReportFigures> {
  const recorded = await recordStatements(large, join(folder, 'recorded'));
  const platform = await Installation.start(large.url, join(folder, 'large'), large.adminKey);
  const smallPlatform = await Installation.start(small.url, join(folder, 'small'), small.adminKey);
  await useKathmandu(platform);

  const reports = zoneNames.flatMap((zone) =>
    questions.map((question) => ({ question, zone, key: `${question}, ${zone}` })),
  );
  const bytes = new Map<string, number>();
  const medians = await withClient(large.url, async (client) => {
    await client.query('SET search_path TO billing, public');
    await requireRightAnswers(platform, client, large);
    const candidates: Record<string, () => Promise<unknown>> = {};
    for (const { question, zone, key } of reports) {
      const path = pathOf(large.asked.old, question, zone, large.endMs);
      candidates[`http ${key}`] = async () => bytes.set(key, (await platform.call('GET', path)).length);
      candidates[`sql ${key}`] = () => replay(client, recorded.get(key) ?? []);
    }
    for (const question of questions) {
      candidates[`small ${question}`] = () =>
        smallPlatform.call('GET', pathOf(small.asked.old, question, 'UTC', small.endMs));
    }
    for (const question of monthQuestions) {
      candidates[`young ${question}`] = () =>
        platform.call('GET', pathOf(large.asked.young, question, 'UTC', large.endMs));
    }
    return mediansInTurn(candidates, rounds);
  });
  await platform.stop();
  await smallPlatform.stop();
  const medianOf = (name: string) => medians[name] ?? NaN;
  return {
    reports: reports.map(({ question, zone, key }) => ({
      question,
      zone,
      httpMs: medianOf(`http ${key}`),
      sqlMs: medianOf(`sql ${key}`),
      statements: recorded.get(key)?.length ?? 0,
      answerBytes: bytes.get(key) ?? 0,
    })),
    small: new Map(questions.map((question) => [question, medianOf(`small ${question}`)])),
    young: new Map(monthQuestions.map((question) => [question, medianOf(`young ${question}`)])),
  };
}

/** `local` is the zone of the operator, who asks. */
async function useKathmandu(platform: Installation): Promise<void> {
  await platform.send('PUT', '/user/profile', { timezone: 'Asia/Kathmandu' });
}

/** What billing runs for each report. */
async function recordStatements(
  { url, adminKey, asked, endMs }: BillingDatabase,
  dataDir: string,
): Promise<Map<string, RecordedStatement[]>> {
  const recorder = await StatementRecorder.start(url, 'billing');
  const platform = await Installation.start(recorder.url, dataDir, adminKey);
  await useKathmandu(platform);
  const recorded = new Map<string, RecordedStatement[]>();
  for (const zone of zoneNames) {
    for (const question of questions) {
      const path = pathOf(asked.old, question, zone, endMs);
      const statements = await recorder.statementsOf(() => platform.call('GET', path));
      if (statements.length === 0) throw new Error(`The report of a ${question} ran no statement that could be noted.`);
      recorded.set(`${question}, ${zone}`, statements);
    }
  }
  await platform.stop();
  await recorder.stop();
  return recorded;
}

/** By the driver and in the way of the product: prepared once where it does so. */
async function replay(client: pg.Client, statements: readonly RecordedStatement[]): Promise<void> {
  for (const { name, text, values } of statements) await client.query({ text, values, ...(name && { name }) });
}

/**
 * A figure for a wrong answer is none: what was held is counted in another way, and the finer report costs as much as
 * the coarser one.
 */
async function requireRightAnswers(
  platform: Installation,
  client: pg.Client,
  { asked: { old, young }, endMs }: BillingDatabase,
): Promise<void> {
  for (const team of [old, young]) {
    const [day, hour] = await Promise.all(
      monthQuestions.map((question) => platform.send<Report>('GET', pathOf(team, question, 'UTC', endMs))),
    );
    const { rows } = await client.query<{ hours: string }>(
      `SELECT sum(quantity_nano::numeric * (least(end_ms, $2) - greatest(start_ms, $1))) / 3600000 / 1000000000 AS hours
       FROM (
         SELECT team_no, start_ms, end_ms, quantity_nano FROM segment
         UNION ALL SELECT team_no, start_ms, $2, quantity_nano FROM open_segment
       ) AS held WHERE team_no = $3 AND start_ms < $2 AND end_ms > $1`,
      [startOfMonth(endMs, 1), endMs, team.no],
    );
    const counted = Number(rows[0]?.hours);
    const shown =
      day?.intervals.flatMap(({ items }) => items).reduce((sum, { unit_hours }) => sum + unit_hours, 0) ?? 0;
    if (day?.total_cost !== hour?.total_cost || Number(day?.total_cost) === 0 || Math.abs(shown / counted - 1) > 1e-9) {
      throw new Error(
        `The reports are wrong: ${shown} unit hours for ${counted}; ${day?.total_cost} by day, ${hour?.total_cost} by hour.`,
      );
    }
  }
}
