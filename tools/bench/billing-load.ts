import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { startEmbeddedPostgres } from '@atoll/database';
import { startNats } from '@atoll/testing';
import { makeTeams, underLoad, type LoadFigures } from './billing-attack.js';
import { createDatabase } from './databases.js';
import { Installation } from './installation.js';
import { percentile } from './measure.js';
import { stopAll } from './processes.js';
import { withClient } from './with-client.js';

/**
 * `npm run bench billing-load`: what others notice of a team that asks for reports of 20 MB at the rate that one key
 * may, in one process and over NATS.
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '20' },
    /** Requests a second of the others. */
    others: { type: 'string', default: '40' },
    /** Reports a second: `ATOLL_LIMIT_BILLING` is 120 a minute. */
    attacks: { type: 'string', default: '2' },
  },
});
const load = { seconds: Number(values.seconds), others: Number(values.others), attacks: Number(values.attacks) };
const connections = 256;
const otherTeams = 10;

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });

const topologies = {
  'one process': (url: string, adminKey: string) =>
    Installation.start(url, join(folder, 'platform'), adminKey, connections),
  'over NATS': async (url: string, adminKey: string) => {
    const nats = await startNats({ storeDir: join(folder, 'jetstream') });
    return Installation.startServices(url, nats.url, adminKey, connections);
  },
};

function show(name: string, { teams, reports, failed, attacker, attackerMiB, residentMiB }: LoadFigures): void {
  const ms = (durations: readonly number[], share: number) =>
    `${percentile(durations, share).toFixed(1).padStart(8)} ms`;
  const both = (durations: readonly number[]) => `p50 ${ms(durations, 0.5)} p99 ${ms(durations, 0.99)}`;
  const answers = [...attacker].map(([status, count]) => `${count} × ${status}`).join(', ');
  console.log(
    `  ${name.padEnd(14)} a team ${both(teams)}   a small report ${both(reports)}   ${failed} not 200   ${residentMiB.toFixed(0)} MiB` +
      (answers && `   attacker: ${answers} of ${attackerMiB.toFixed(1)} MiB`),
  );
}

async function measure(name: string, start: (url: string, adminKey: string) => Promise<Installation>): Promise<void> {
  const url = await createDatabase(postgres.url, 'bench_load');
  const platform = await start(url, createApiKey());
  const paths = await withClient(url, (client) => makeTeams(platform, client, otherTeams));
  console.log(
    `${name}: ${load.others} requests a second of others, and ${load.attacks} reports a second of the attacker`,
  );
  await underLoad(platform, paths, { ...load, seconds: 3 });
  show('alone', await underLoad(platform, paths, { ...load, attacks: 0 }));
  show('under attack', await underLoad(platform, paths, load));
  await platform.stop();
}

try {
  console.log(`${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}`);
  for (const [name, start] of Object.entries(topologies))
    if (values.only === undefined || values.only === name) await measure(name, start);
} finally {
  await stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
