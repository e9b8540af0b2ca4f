import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { startEmbeddedPostgres } from '@atoll/database';
import type pg from 'pg';
import { createDatabase } from './databases.js';
import { Installation } from './installation.js';
import { mediansInTurn } from './measure.js';
import { measureIngest } from './pod-logs-ingest.js';
import { measureReaders } from './pod-logs-readers.js';
import { stopAll } from './processes.js';
import { withClient } from './with-client.js';

/**
 * `npm run bench pod-logs`: the last page of a team's logs among many lines beside one among few, how fast lines are
 * stored beside COPY, and what many readers cost.
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    lines: { type: 'string', default: '5000000' },
    few: { type: 'string', default: '5000' },
    /** Pods of the team. */
    pods: { type: 'string', default: '20' },
    calls: { type: 'string', default: '300' },
    /** Lines that are stored in a round. */
    ingest: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '5' },
    /** Pods that are read at once. */
    readers: { type: 'string', default: '3000' },
    seconds: { type: 'string', default: '20' },
  },
});
const wanted = (name: string) => values.only === undefined || values.only === name;
const met = (isMet: boolean) => (isMet ? 'met' : 'MISSED');
const days = 3;

interface Written {
  platform: Installation;
  teamId: string;
  podName: string;
}

/** A platform with one team whose pods have written so many lines over some days, the last one now. */
async function startWith(serverUrl: string, folder: string, name: string, lines: number): Promise<Written> {
  const url = await createDatabase(serverUrl, name);
  const platform = await Installation.start(url, join(folder, name), createApiKey());
  const { id: teamId } = await platform.send<{ id: string }>('POST', '/team', { name });
  await withClient(url, (client) => write(client, teamId, lines));
  return { platform, teamId, podName: 'pod-1' };
}

async function write(client: pg.Client, teamId: string, lines: number): Promise<void> {
  await client.query('SET search_path TO pods, public');
  const dayNs = 86_400_000_000_000n;
  const today = BigInt(Math.floor(Date.now() / 86_400_000));
  for (let day = today - BigInt(days); day <= today; day++) {
    const name = `log_line_${new Date(Number(day) * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '')}`;
    const { rows } = await client.query<{ known: boolean }>('SELECT to_regclass($1) IS NOT NULL AS known', [name]);
    if (!rows[0]?.known) {
      await client.query(
        `CREATE TABLE ${name} PARTITION OF log_line FOR VALUES FROM (${day * dayNs}) TO (${(day + 1n) * dayNs})`,
      );
    }
  }
  await client.query('INSERT INTO log_scope (team_id, gpuaas_id) VALUES ($1, 1)', [teamId]);
  await client.query(
    `WITH made AS (
       INSERT INTO pod (pod_id, pod_name, name, team_id, workspace_id, subscription_id, gpuaas_id, region_id, profile, image, vgpus, command, ports,
         volumes, restart, start, run, state, entered_at)
       SELECT gen_random_uuid(), 'pod-' || number, 'pod', $1, $2, 1, 1, 1, '1g.10gb', 'busybox', 1, '[]', '[]', '[]', 'always', 1, 1, 'stopped', now()
       FROM generate_series(1, $3::integer) number RETURNING pod_id, pod_name
     )
     INSERT INTO log_source (pod_id, pod_name, is_platform, scope_no) SELECT pod_id, pod_name, false, (SELECT no FROM log_scope WHERE team_id = $1) FROM made`,
    [teamId, randomUUID(), values.pods],
  );
  await client.query(
    `INSERT INTO log_line (scope_no, source_no, at_ns, stream, message)
     SELECT scope_no, no, $1::bigint + number * ($2::bigint / $3::bigint), 0, 'epoch ' || number % 90 || ' step ' || number || ' loss=0.41 tokens/s=18423'
     FROM generate_series(1, $3::bigint) number
     JOIN (SELECT no, scope_no, row_number() OVER (ORDER BY no) - 1 AS place FROM log_source) source ON source.place = number % $4::bigint`,
    [String(BigInt(Date.now()) * 1_000_000n - BigInt(days) * dayNs), String(BigInt(days) * dayNs), lines, values.pods],
  );
  await client.query('VACUUM ANALYZE');
}

async function showReading(serverUrl: string, folder: string): Promise<void> {
  const [few, many] = [Number(values.few), Number(values.lines)];
  const small = await startWith(serverUrl, folder, 'bench_few', few);
  const large = await startWith(serverUrl, folder, 'bench_many', many);
  const pages = {
    'last page of a team': ({ teamId }: Written) => `/logs/pods?team_id=${teamId}`,
    'last page of a pod': ({ podName }: Written) => `/logs/pods?pod_name=${podName}`,
    'a search that 1 line in 90 matches': ({ teamId }: Written) =>
      `/logs/pods?team_id=${teamId}&search=epoch%207%20&limit=20`,
  };
  console.log(
    `GET /logs/pods, 100 lines, p50 of ${values.calls} calls, ${many.toLocaleString('en')} lines beside ${few.toLocaleString('en')}; goal 1.5`,
  );
  for (const [name, path] of Object.entries(pages)) {
    const ask = async (of: Written) => {
      const { data } = await of.platform.send<{ data: unknown[] }>('GET', path(of));
      if (data.length < 20) throw new Error(`${name}: ${data.length} lines`);
    };
    const medians = await mediansInTurn({ few: () => ask(small), many: () => ask(large) }, Number(values.calls));
    const ratio = medians.many / medians.few;
    console.log(
      `  ${name.padEnd(36)} ${medians.many.toFixed(2)} ms / ${medians.few.toFixed(2)} ms   ratio ${ratio.toFixed(2)}   ${met(ratio <= 1.5)}`,
    );
  }
  await small.platform.stop();
  await large.platform.stop();
}

async function showIngest(): Promise<void> {
  const load = { pods: 50, lines: Number(values.ingest), rounds: Number(values.rounds) };
  const { product, floor, ratio } = await measureIngest(load);
  console.log(
    `lines stored, from ${load.pods} pods: ${product.toFixed(0)} a second, COPY into a table of the same form ${floor.toFixed(0)}   ` +
      `ratio ${ratio.toFixed(2)}   (goal 0.2: ${met(ratio >= 0.2)})`,
  );
}

async function showReaders(): Promise<void> {
  const load = { pods: Number(values.readers), seconds: Number(values.seconds) };
  const { cpu, databaseCpu, transactions, lines, ageP50Ms, ageMaxMs } = await measureReaders(load);
  console.log(
    `${load.pods} simulated pods read at once, a line a second each, all but one of one team: ${cpu.toFixed(2)} s of CPU a second, PostgreSQL ` +
      `${databaseCpu.toFixed(2)}, ` +
      `${transactions.toFixed(0)} transactions a second, ${lines.toFixed(0)} lines a second; newest line of the other team ` +
      `${ageP50Ms.toFixed(0)} ms old at p50, ${ageMaxMs.toFixed(0)} ms at most`,
  );
}

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres') });
process.env.ATOLL_TEST_DATABASE_URL = postgres.url;
try {
  console.log(`${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}`);
  if (wanted('ingest')) await showIngest();
  if (wanted('readers')) await showReaders();
  if (wanted('reading')) await showReading(postgres.url, folder);
} finally {
  await stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
