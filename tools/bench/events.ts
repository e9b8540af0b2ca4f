import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '@atoll/database';
import { createDatabase } from './databases.js';
import { measureCommits } from './events-commits.js';
import { stopAll } from './processes.js';

/** `npm run bench events`: what events cost, each figure beside its floor, on a database and a broker of its own. */
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    connections: { type: 'string', default: '24' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
  },
});
const wanted = (name: string) => values.only === undefined || values.only === name;
const load = { connections: Number(values.connections), seconds: Number(values.seconds) };
const rounds = Number(values.rounds);

const goal = 0.8;

/** Statements beside START, COMMIT and the event: lock and update of an object, and an insert a row. */
const commitCases = [
  { name: '11 statements (as teams.create), relay here', relay: 'here', rows: 9 },
  { name: '11 statements, relay in another replica', relay: 'elsewhere', rows: 9 },
  { name: '3 statements, relay here', relay: 'here', rows: 1 },
] as const;

async function showCommits(): Promise<void> {
  console.log(`Commits a second with an event, ${load.connections} connections, ${rounds} rounds of ${load.seconds} s`);
  for (const { name, relay, rows } of commitCases) {
    const databaseUrl = await createDatabase(postgres.url, 'bench_commits');
    const { withRow, withNone } = await measureCommits({ databaseUrl, relay, rows }, load, rounds);
    console.log(
      `  ${name.padEnd(44)} ${withRow.product.toFixed(0).padStart(6)} /s   same rows, no relay ${withRow.floor.toFixed(0).padStart(6)} /s   ` +
        `ratio ${withRow.ratio.toFixed(2)} (goal ${goal}: ${withRow.ratio >= goal ? 'met' : 'MISSED'})   ` +
        `no event ${withNone.floor.toFixed(0).padStart(6)} /s   ratio ${withNone.ratio.toFixed(2)}`,
    );
  }
}

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });
try {
  console.log(`${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}; fsync on\n`);
  if (wanted('commits')) await showCommits();
} finally {
  await stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
