import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '@atoll/database';
import { createDatabase } from './databases.js';
import { measureExposing } from './pods-expose.js';
import { stopAll } from './processes.js';

/** `npm run bench:pods`: exposing services of simulated pods, beside its floor, in one run, on a database of its own. Smaller by its flags. */
const { values } = parseArgs({
  options: {
    /** Exposed one after the other. */
    services: { type: 'string', default: '100' },
    /** Each asked for twice, all at once. */
    ports: { type: 'string', default: '500' },
  },
});
const met = (isMet: boolean) => (isMet ? 'met' : 'MISSED');
const milliseconds = (value: number) => `${value.toFixed(1).padStart(6)} ms`;

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });
try {
  console.log(`${cpus().length} cores, ${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(1)}, Node.js ${process.version}\n`);
  const url = await createDatabase(postgres.url, 'bench_pods');
  const { activeMs, contention, floorMs } = await measureExposing(url, folder, Number(values.services), Number(values.ports));
  console.log(`POST /pods/expose-service until active, ${values.services} one after the other`);
  console.log(
    `  Atoll   p50 ${milliseconds(activeMs.p50)}   p99 ${milliseconds(activeMs.p99)}   (goal 100 ms: ${met(activeMs.p50 < 100)})`,
  );
  console.log(
    `  floor   p50 ${milliseconds(floorMs.p50)}   p99 ${milliseconds(floorMs.p99)}   ratio ${(activeMs.p50 / floorMs.p50).toFixed(1)}\n`,
  );
  const { asked, ports, won, refused, ms } = contention;
  const isExact = won === ports && refused === asked - ports;
  console.log(
    `${asked} at once for ${ports} ports: ${won} accepted, ${refused} refused, in ${(ms / 1000).toFixed(2)} s   (exact: ${met(isExact)})`,
  );
} finally {
  await stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
