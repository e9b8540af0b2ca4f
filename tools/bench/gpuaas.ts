import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '@atoll/database';
import { createDatabase } from './databases.js';
import { measureCrowd } from './gpuaas-crowd.js';
import { measureBesideEnded, measureGrowth } from './gpuaas-growth.js';
import { measureListing } from './gpuaas-listing.js';
import { measureSubscribing } from './gpuaas-subscribe.js';
import { stopAll } from './processes.js';

/**
 * `npm run bench gpuaas`: listing, subscribing, many teams at one pool, and how each operation grows, each figure
 * beside its floor, in one run, on a database of its own. Smaller by its flags.
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    /** Live ones, of the listing. */
    subscriptions: { type: 'string', default: '100000' },
    teams: { type: 'string', default: '2000' },
    /** The one compared with page 1. */
    page: { type: 'string', default: '1000' },
    /** Calls of each page that count. */
    calls: { type: 'string', default: '200' },
    /** Of 7 slices each, in the pool that is filled. */
    gpus: { type: 'string', default: '715' },
    callers: { type: 'string', default: '50' },
    /** How often the pool is filled for each number of vGPUs, and rounds of many teams at one pool. */
    fills: { type: 'string', default: '3' },
    /** A request. */
    vgpus: { type: 'string', default: '1,4' },
    /** How many of each there are in turn. */
    sizes: { type: 'string', default: '100,300,1000,3000,10000' },
    /** Workloads, and subscriptions, that have ended. */
    ended: { type: 'string', default: '200000' },
  },
});
const wanted = (name: string) => values.only === undefined || values.only === name;
const met = (isMet: boolean) => (isMet ? 'met' : 'MISSED');
const milliseconds = (value: number) => `${value.toFixed(2).padStart(7)} ms`;

async function showListing(url: string, folder: string): Promise<void> {
  const size = { subscriptions: Number(values.subscriptions), teams: Number(values.teams) };
  const figures = await measureListing(url, folder, size, [1, Number(values.page)], Number(values.calls));
  console.log(
    `GET /gpuaas/pool-subscriptions/all, ${size.subscriptions.toLocaleString('en')} live, limit 10, p50 of ${values.calls} calls`,
  );
  for (const { page, httpMs, pageSqlMs, allSqlMs } of figures) {
    const ratio = httpMs / pageSqlMs;
    console.log(
      `  ${`page ${page}`.padEnd(12)} ${milliseconds(httpMs)}   SQL of the page ${milliseconds(pageSqlMs)}   ratio ${ratio.toFixed(2)}   ` +
        `(goal 3: ${met(ratio <= 3)})   all its SQL ${milliseconds(allSqlMs)}`,
    );
  }
  const [first, late] = figures.map(({ httpMs }) => httpMs);
  const ratio = (late ?? NaN) / (first ?? NaN);
  console.log(
    `  late page to first: ratio ${ratio.toFixed(2)}   (goal 1.5 either way: ${met(ratio <= 1.5 && ratio >= 1 / 1.5)})\n`,
  );
}

async function showSubscribing(url: string, folder: string): Promise<void> {
  const load = {
    gpus: Number(values.gpus),
    callers: Number(values.callers),
    fills: Number(values.fills),
    vgpus: values.vgpus.split(',').map(Number),
  };
  console.log(
    `POST /gpuaas/pool/subscribe, ${load.callers} callers, a pool of ${load.gpus * 7} slices until it is full, ${load.fills} times`,
  );
  for (const { vgpus, accepted, activated, fullMs, activeMs } of await measureSubscribing(url, folder, load)) {
    console.log(
      `  ${`${vgpus} vGPU`.padEnd(8)} accepted ${accepted.product.toFixed(0).padStart(6)} /s   floor ${accepted.floor.toFixed(0).padStart(6)} /s   ` +
        `ratio ${accepted.ratio.toFixed(3)}   (goal 0.5: ${met(accepted.ratio >= 0.5)})   full after ${(fullMs / 1000).toFixed(2)} s`,
    );
    console.log(
      `  ${''.padEnd(8)} active   ${activated.product.toFixed(0).padStart(6)} /s   floor ${activated.floor.toFixed(0).padStart(6)} /s   ` +
        `ratio ${activated.ratio.toFixed(3)}   (goal 0.3: ${met(activated.ratio >= 0.3)})   all active after ${(activeMs / 1000).toFixed(2)} s`,
    );
  }
}

async function showCrowd(url: string, folder: string): Promise<void> {
  const load = { teams: 12, atOnce: 6, held: 12, rounds: Number(values.fills) };
  console.log(
    `${load.teams} teams with ${load.atOnce} requests each at once under way for one pool, ${load.teams * load.held} of each kind`,
  );
  for (const { kind, perSecond, medianMs, longestMs, refused } of await measureCrowd(url, folder, load)) {
    console.log(
      `  ${kind.padEnd(18)} ${perSecond.toFixed(0).padStart(5)} /s   median ${milliseconds(medianMs)}   longest ${milliseconds(longestMs)}   refused ${refused}`,
    );
  }
}

async function showGrowth(folder: string): Promise<void> {
  const sizes = values.sizes.split(',').map(Number);
  console.log(`Growth from ${sizes[0]} to ${sizes.at(-1)}: milliseconds, and k where they grow as size^k`);
  for (const { name, points, exponent } of await measureGrowth(postgres.url, folder, sizes, 5)) {
    const all = points.map(({ size, ms }) => `${size}: ${ms.toFixed(1)}`).join('   ');
    console.log(`  ${name.padEnd(46)} ${all}   k ${exponent.toFixed(2)}   (goal 1.1: ${met(exponent <= 1.1)})`);
  }
  console.log(
    `\nBeside ${Number(values.ended).toLocaleString('en')} workloads and as many subscriptions that have ended`,
  );
  for (const { name, fewMs, manyMs } of await measureBesideEnded(postgres.url, folder, Number(values.ended), 30)) {
    const ratio = manyMs / fewMs;
    console.log(
      `  ${name.padEnd(46)} ${milliseconds(fewMs)} without   ${milliseconds(manyMs)} with   ratio ${ratio.toFixed(2)}   (goal 1.2: ${met(ratio <= 1.2)})`,
    );
  }
}

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });
try {
  console.log(`${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}\n`);
  if (wanted('listing')) await showListing(await createDatabase(postgres.url, 'bench_listing'), folder);
  if (wanted('growth')) await showGrowth(folder);
  if (wanted('crowd')) await showCrowd(await createDatabase(postgres.url, 'bench_crowd'), folder);
  if (wanted('subscribe')) await showSubscribing(await createDatabase(postgres.url, 'bench_subscribe'), folder);
} finally {
  await stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
