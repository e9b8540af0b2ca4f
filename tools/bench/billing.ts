import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '@atoll/database';
import { freePort } from '@atoll/testing';
import { historyMonths, type DataSize } from './billing-data.js';
import { openBillingDatabase, withCopy } from './billing-database.js';
import { measureIngest, segmentTables, sizeOf } from './billing-ingest.js';
import { measureReports, questions, type BillingDatabase, type ReportFigures } from './billing-reports.js';
import { Installation } from './installation.js';
import { type Comparison } from './measure.js';
import { stopAll } from './processes.js';
import { withClient } from './with-client.js';

/**
 * `npm run bench billing`: what reports and ingest take, each figure beside its floor, on generated data, in one run.
 * Smaller by its flags; `--keep <folder>` keeps the data for the next run with the same flags.
 */
const { values } = parseArgs({
  options: {
    segments: { type: 'string', default: '20000000' },
    /** 10,000 segments each unless given. */
    teams: { type: 'string' },
    /** Of the database beside it. */
    small: { type: 'string', default: '200000' },
    /** Calls of each report that count. */
    rounds: { type: 'string', default: '100' },
    /** Of 1,000 facts; five rounds of them count. */
    batches: { type: 'string', default: '50' },
    connections: { type: 'string', default: '4' },
    only: { type: 'string' },
    keep: { type: 'string' },
  },
});
const segments = Number(values.segments);
const teams = Number(values.teams ?? segments / 10_000);
const size: DataSize = { teams, segmentsPerTeam: segments / teams };
const smallSize: DataSize = { ...size, teams: Math.max(2, Math.round(Number(values.small) / size.segmentsPerTeam)) };
const rounds = Number(values.rounds);
const wanted = (name: string) => values.only === undefined || values.only === name;

const milliseconds = (value: number) => `${value.toFixed(2).padStart(8)} ms`;
const met = (isMet: boolean) => (isMet ? 'met' : 'MISSED');

function showReports({ reports, small, young }: ReportFigures): void {
  console.log(`GET /api/team-billing, p50 of ${rounds} calls, beside the SQL that it runs; goal 2 × SQL + 3 ms`);
  for (const { question, zone, httpMs, sqlMs, statements, answerBytes } of reports) {
    const goalMs = 2 * sqlMs + 3;
    console.log(
      `  ${`${question}, ${zone}`.padEnd(30)} ${milliseconds(httpMs)}   SQL ${milliseconds(sqlMs)} (${statements})   goal ${milliseconds(goalMs)}   ` +
        `${met(httpMs <= goalMs).padEnd(6)}   ${(answerBytes / 1024).toFixed(0).padStart(5)} KiB`,
    );
  }
  const inZone = (question: string, zone: string) =>
    reports.find((figure) => figure.question === question && figure.zone === zone)?.httpMs ?? NaN;
  const beside = (name: string, oneMs: number, otherMs: number, isMet: boolean) =>
    console.log(
      `  ${name.padEnd(30)} ${milliseconds(oneMs)} / ${milliseconds(otherMs)}   ratio ${(oneMs / otherMs).toFixed(2)}   ${met(isMet)}`,
    );

  console.log(`\nAsia/Kathmandu beside UTC; goal 1.10, or 0.5 ms`);
  for (const question of questions) {
    const [local, utc] = [inZone(question, 'Asia/Kathmandu'), inZone(question, 'UTC')];
    beside(question, local, utc, local <= 1.1 * utc || local - utc <= 0.5);
  }
  console.log(
    `\n${segments.toLocaleString('en')} segments beside ${(smallSize.teams * smallSize.segmentsPerTeam).toLocaleString('en')}; goal 1.5`,
  );
  for (const [question, smallMs] of small)
    beside(question, inZone(question, 'UTC'), smallMs, inZone(question, 'UTC') <= 1.5 * smallMs);
  console.log(`\nA team of ${historyMonths} months beside one of a single month, for that month; goal 1.3`);
  for (const [question, youngMs] of young)
    beside(question, inZone(question, 'UTC'), youngMs, inZone(question, 'UTC') <= 1.3 * youngMs);
}

async function showIngest({ url, adminKey }: BillingDatabase): Promise<void> {
  const connections = Number(values.connections);
  const platform = await Installation.start(url, join(folder, 'ingest'), adminKey, connections);
  const load = { rounds: 5, batches: Number(values.batches), connections };
  const figures = await withClient(url, (client) => measureIngest(platform, client, load));
  await platform.stop();
  const { told, added, bytesPerFact, bytesPerSegment } = figures;
  console.log(
    `\nPOST /api/usage-events, batches of 1,000 over ${connections} connections, 30 % told before, 10 % of the new late, beside COPY; goal 0.2`,
  );
  const compared = (name: string, { product, floor, ratio }: Comparison) =>
    console.log(
      `  ${name.padEnd(30)} ${product.toFixed(0).padStart(8)} /s   floor ${floor.toFixed(0).padStart(8)} /s   ratio ${ratio.toFixed(3)}   ${met(ratio >= 0.2)}`,
    );
  compared('facts told', told);
  compared('those of them that are new', added);
  console.log(
    `  with indexes ${bytesPerFact.toFixed(0)} bytes a fact, and ${bytesPerSegment.toFixed(0)} bytes by which the segments grow for each that is added`,
  );
}

async function showSize({ url }: BillingDatabase): Promise<void> {
  const { bytes, rows } = await withClient(url, (client) => sizeOf(client, segmentTables));
  const each = bytes / rows;
  console.log(
    `${rows.toLocaleString('en')} segments, ${each.toFixed(0)} bytes each with indexes; goal 200: ${met(each <= 200)}\n`,
  );
}

const folder = values.keep === undefined ? mkdtempSync(join(tmpdir(), 'atoll-bench-')) : resolve(values.keep);
mkdirSync(folder, { recursive: true });
const port = await freePort();

async function withPostgres<T>(work: (url: string) => Promise<T>): Promise<T> {
  const postgres = await startEmbeddedPostgres({ dataDir: folder, port });
  try {
    return await work(postgres.url);
  } finally {
    await stopAll();
    await postgres.stop();
  }
}

try {
  console.log(
    `${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}; ${size.teams.toLocaleString('en')} teams of ${size.segmentsPerTeam.toLocaleString('en')} segments, ${historyMonths} months`,
  );
  const startedAt = performance.now();
  const [small, large] = await withPostgres(async (url) => [
    await openBillingDatabase(url, 'bench_small', folder, smallSize),
    await openBillingDatabase(url, 'bench_large', folder, size),
  ]);
  console.log(`Data there after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
  // The server was stopped in between: what was generated is on the disk, and no writing of it falls into the figures.
  await withPostgres(async (url) => {
    await showSize(large);
    if (wanted('reports')) showReports(await measureReports(large, small, folder, rounds));
    if (wanted('ingest')) await withCopy(url, large, showIngest);
  });
} finally {
  if (values.keep === undefined) rmSync(folder, { recursive: true, force: true });
}
