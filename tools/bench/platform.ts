import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '@atoll/database';
import { startNats } from '@atoll/testing';
import { measureFootprint } from './footprint.js';
import { measureKeyVerification } from './key-verification.js';
import { type Comparison } from './measure.js';
import { stopAll } from './processes.js';
import { measureTeamRead } from './team-read.js';

/**
 * `npm run bench`: each figure beside its floor, in one run, on a database and a broker of its own. Smaller by its
 * flags.
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '32' },
    keys: { type: 'string', default: '1000,100000,1000000' },
  },
});
const load = { seconds: Number(values.seconds), connections: Number(values.connections) };
const rounds = Number(values.rounds);
const wanted = (name: string) => values.only === undefined || values.only === name;

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });
const nats = await startNats();

const row = (name: string, { product, floor, ratio }: Comparison, goal: number) =>
  console.log(
    `${name.padEnd(28)} ${product.toFixed(0).padStart(8)} /s   floor ${floor.toFixed(0).padStart(8)} /s   ratio ${ratio.toFixed(2)}   (goal ${goal})`,
  );

try {
  console.log(
    `${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}; ${rounds} rounds of ${load.seconds} s, ${load.connections} connections\n`,
  );
  if (wanted('team-read')) {
    console.log('GET /api/team/{id} with a key, limits off');
    const { oneProcess, overNats } = await measureTeamRead(
      postgres.url,
      nats.url,
      join(folder, 'platform'),
      load,
      rounds,
    );
    row('  one process', oneProcess, 0.5);
    row('  over NATS', overNats, 0.8);
  }
  if (wanted('keys')) {
    console.log('\nKey verification past the cache, median, runs interleaved');
    const sizes = values.keys.split(',').map(Number);
    for (const { keys, medianMs } of await measureKeyVerification(postgres.url, nats.url, sizes)) {
      console.log(`  ${keys.toLocaleString('en').padStart(9)} keys   ${medianMs.toFixed(3)} ms`);
    }
  }
  if (wanted('footprint')) {
    const { readyMs, restartMs, residentMiB } = await measureFootprint();
    console.log(
      `\nnpm start, without the build: first start ready after ${readyMs.toFixed(0)} ms, later ones after ${restartMs.toFixed(0)} ms`,
    );
    console.log(`Memory at rest without PostgreSQL: ${residentMiB.toFixed(0)} MiB`);
  }
} finally {
  await stopAll();
  await nats.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
