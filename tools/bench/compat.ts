import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { startEmbeddedPostgres } from '@atoll/database';
import { freePort } from '@atoll/testing';
import { makeWritesAndListings } from './compat-pods.js';
import { makeReads } from './compat-reads.js';
import { createDatabase } from './databases.js';
import { Installation } from './installation.js';
import { mediansInTurn } from './measure.js';
import { stopAll } from './processes.js';
import { withClient } from './with-client.js';

/** `npm run bench compat`: old calls beside the operations that they map to, one after the other. */
const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '300' },
    pods: { type: 'string', default: '1000' },
    members: { type: 'string', default: '1000' },
  },
});
const [calls, pods, members] = [Number(values.calls), Number(values.pods), Number(values.members)];
const goal = 1.5;

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });
try {
  const compatPort = await freePort();
  process.env.ATOLL_COMPAT_PORT = String(compatPort);
  const adminKey = createApiKey();
  const database = await createDatabase(postgres.url, 'bench_compat');
  const platform = await Installation.start(database, join(folder, 'platform'), adminKey, 4);
  const mount = platform.beside(compatPort);
  const reads = await makeReads(platform, mount);
  // Both sides of each round, and of those that do not count.
  const subscriptions = 2 * (Math.ceil(0.2 * calls) + Math.ceil((0.2 * calls) / 6) + 1);
  const others = await withClient(database, (client) =>
    makeWritesAndListings(platform, mount, client, { pods, members, subscriptions }),
  );
  const [load] = loadavg();
  console.log(
    `${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}, load average ${load?.toFixed(1)}; p50 of ${calls} calls, of fewer where a case takes long\n`,
  );
  for (const { name, old, main, share = 1 } of [...reads, ...others]) {
    const medians = await mediansInTurn({ old, main }, Math.ceil(share * calls));
    const ratio = medians.old / medians.main;
    const verdict = ratio <= goal ? 'met' : 'MISSED';
    console.log(
      `  ${name.padEnd(42)} old ${medians.old.toFixed(2)} ms, main ${medians.main.toFixed(2)} ms: ${ratio.toFixed(2)} times (goal ${goal}: ${verdict})`,
    );
  }
  mount.close();
  await platform.stop();
} finally {
  await stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
