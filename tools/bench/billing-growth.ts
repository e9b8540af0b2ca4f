import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { startEmbeddedPostgres } from '@atoll/database';
import { measureResources, shapeNames } from './billing-resources.js';
import { createDatabase } from './databases.js';
import { Installation } from './installation.js';
import { stopAll } from './processes.js';
import { withClient } from './with-client.js';

/** `npm run bench billing-growth`: how the time that a bill takes grows with what is billed. */
const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '100,300,1000,3000,10000' },
    rounds: { type: 'string', default: '12' },
  },
});
const sizes = values.sizes.split(',').map(Number);
const goal = 1.1;

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });

async function showResources(): Promise<void> {
  const url = await createDatabase(postgres.url, 'bench_resources');
  // What PostgreSQL may choose after five calls: a plan that is made for few rows.
  await withClient(url, (client) =>
    client.query('ALTER DATABASE bench_resources SET plan_cache_mode = force_generic_plan'),
  );
  const platform = await Installation.start(url, join(folder, 'resources'), createApiKey());
  const figures = await withClient(url, (client) => measureResources(platform, client, sizes, Number(values.rounds)));
  await platform.stop();
  console.log(`The bill of a month by pool and by volume, p50 of ${values.rounds} calls; goal: an exponent of ${goal}`);
  console.log(`  ${'n'.padEnd(30)} ${sizes.map((size) => size.toLocaleString('en').padStart(10)).join(' ')}`);
  for (const shape of shapeNames) {
    const durations = figures.durationsMs.get(shape)?.map((ms) => `${ms.toFixed(1)} ms`.padStart(10)) ?? [];
    const exponent = figures.exponents.get(shape) ?? NaN;
    console.log(
      `  ${shape.padEnd(30)} ${durations.join(' ')}   n^${exponent.toFixed(2)}   ${exponent <= goal ? 'met' : 'MISSED'}`,
    );
  }
}

try {
  console.log(`${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}`);
  await showResources();
} finally {
  await stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
