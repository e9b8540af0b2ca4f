import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { startEmbeddedPostgres } from '@atoll/database';
import { freePort, startNats } from '@atoll/testing';
import { createDatabase } from './databases.js';
import { percentile, runPhase, type Phase } from './neighbour-load.js';
import { makeNeighbours, type Neighbours } from './neighbour-teams.js';
import { start, stopAll, untilOperator, untilReady } from './processes.js';
import { withClient } from './with-client.js';

/**
 * `npm run bench neighbours`: how long others wait beside one team that does what its rate limits allow, with the
 * limits of production. The team has 991 workspaces, and each of its writers changes the team's description ten times a
 * second. With `--burst 50` so many of its members read the team 60 times each, all at once.
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '20' },
    /** Members of other teams, each with five requests a second. */
    callers: { type: 'string', default: '20' },
    /** Members of the busy team that write, in turn. */
    writers: { type: 'string', default: '1,5' },
    workspaces: { type: 'string', default: '990' },
    burst: { type: 'string' },
  },
});
const wanted = (name: string) => values.only === undefined || values.only === name;
const seconds = Number(values.seconds);
const environment = {
  ATOLL_ADMIN_KEY: createApiKey(),
  ATOLL_KEY_PEPPER: 'a pepper for benchmarks only',
  ATOLL_BUS_SECRET: 'a secret for benchmarks only',
};

async function startOneProcess(databaseUrl: string, dataDir: string): Promise<string> {
  const port = await freePort();
  start('apps/platform/src/main.js', [], {
    ...environment,
    DATABASE_URL: databaseUrl,
    ATOLL_DATA_DIR: dataDir,
    PORT: String(port),
  });
  return `http://127.0.0.1:${port}`;
}

async function startServices(databaseUrl: string, natsUrl: string): Promise<string> {
  const port = await freePort();
  const shared = { ...environment, DATABASE_URL: databaseUrl, NATS_URL: natsUrl, HEALTH_PORT: '0' };
  for (const service of ['teams', 'billing', 'gpuaas']) start(`apps/${service}/src/main.js`, [], shared);
  start('apps/gateway/src/main.js', [], { ...shared, PORT: String(port) });
  return `http://127.0.0.1:${port}`;
}

/** What events took up: events that billing has received, and what PostgreSQL has written to its log, in MB. */
async function written(databaseUrl: string): Promise<{ events: number; walMb: number }> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ events: string; wal: string }>(
      `SELECT (SELECT count(*) FROM billing.inbox) AS events, pg_current_wal_lsn() - '0/0' AS wal`,
    );
    return { events: Number(rows[0]?.events), walMb: Number(rows[0]?.wal) / 1e6 };
  });
}

function show(
  name: string,
  { latenciesMs, refusals, busy }: Phase,
  quietMs: number,
  events: number,
  walMb: number,
): void {
  const [p50, p95, p99] = [50, 95, 99].map((at) => percentile(latenciesMs, at)) as [number, number, number];
  const statuses = Object.entries(busy).map(([status, count]) => `${count} × ${status}`);
  console.log(
    `  ${name.padEnd(22)} p50 ${p50.toFixed(1)} ms (${(p50 / quietMs).toFixed(2)} × undisturbed), p95 ${p95.toFixed(1)}, p99 ${p99.toFixed(1)}, most ${Math.max(...latenciesMs).toFixed(0)}; ` +
      `${refusals} of ${latenciesMs.length} refused; the busy team: ${statuses.join(', ') || 'nothing'}; ${events} events, ${walMb.toFixed(0)} MB of WAL`,
  );
}

async function measure(name: string, databaseUrl: string, url: string): Promise<void> {
  await untilReady(`${url}/readyz`);
  await untilOperator(url, environment.ATOLL_ADMIN_KEY);
  const neighbours: Neighbours = await makeNeighbours(url, databaseUrl, environment.ATOLL_ADMIN_KEY, {
    callers: Number(values.callers),
    writers: Math.max(5, Number(values.burst ?? 0)),
    workspaces: Number(values.workspaces),
  });
  console.log(name);
  await runPhase(url, neighbours, { seconds: 3, writers: 0 });
  let quietMs = 0;
  const quiet = { what: 'undisturbed', writers: 0, burst: 0 };
  const updates = values.writers.split(',').map(Number);
  const loads =
    values.burst === undefined
      ? updates.map((writers) => ({ what: `${writers * 10} updates a second`, writers, burst: 0 }))
      : [{ what: `${values.burst} members at once`, writers: 0, burst: Number(values.burst) }];
  for (const { what, ...load } of [quiet, ...loads, quiet]) {
    const before = await written(databaseUrl);
    const phase = await runPhase(url, neighbours, { seconds, ...load });
    const after = await written(databaseUrl);
    quietMs ||= percentile(phase.latenciesMs, 50);
    show(what, phase, quietMs, after.events - before.events, after.walMb - before.walMb);
  }
  await stopAll();
}

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });
const nats = await startNats();
try {
  console.log(
    `${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}; ${values.callers} callers, ${seconds} s a phase\n`,
  );
  if (wanted('one-process')) {
    const database = await createDatabase(postgres.url, 'bench_one_process');
    await measure('one process', database, await startOneProcess(database, join(folder, 'platform')));
  }
  if (wanted('services')) {
    const database = await createDatabase(postgres.url, 'bench_services');
    await measure('over NATS', database, await startServices(database, nats.url));
  }
} finally {
  await stopAll();
  await nats.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
