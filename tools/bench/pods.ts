import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '@atoll/database';
import { createDatabase } from './databases.js';
import { measureExposing } from './pods-expose.js';
import { measureStarts, startsLack } from './pods-start.js';
import { stopAll } from './processes.js';

/**
 * `npm run bench pods`: exposing services of simulated pods, and starting pods on a container engine, beside their
 * floors, in one run, on databases of their own. Smaller by its flags.
 */
const { values } = parseArgs({
  options: {
    /** Exposed one after the other. */
    services: { type: 'string', default: '100' },
    /** Each asked for twice, all at once. */
    ports: { type: 'string', default: '500' },
    /** Pods on a container engine, started one after the other. */
    starts: { type: 'string', default: '20' },
  },
});
const met = (isMet: boolean) => (isMet ? 'met' : 'MISSED');
const milliseconds = (value: number) => `${value.toFixed(1).padStart(6)} ms`;

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });
try {
  console.log(
    `${cpus().length} cores, ${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(1)}, Node.js ${process.version}\n`,
  );
  const url = await createDatabase(postgres.url, 'bench_pods');
  const { activeMs, contention, floorMs } = await measureExposing(
    url,
    folder,
    Number(values.services),
    Number(values.ports),
  );
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
    `${asked} at once for ${ports} ports: ${won} accepted, ${refused} refused, in ${(ms / 1000).toFixed(2)} s   (exact: ${met(isExact)})\n`,
  );
  const lack = startsLack();
  if (lack) console.log(`POST /pods on a container engine: NOT MEASURED, ${lack}`);
  else {
    const starts = Number(values.starts);
    const { podMs, podmanMs } = await measureStarts(
      await createDatabase(postgres.url, 'bench_pod_starts'),
      folder,
      starts,
    );
    const goalMs = 1.5 * podmanMs.p50 + 200;
    console.log(`POST /pods until running, container engine, image present, ${starts} one after the other`);
    console.log(
      `  Atoll   p50 ${milliseconds(podMs.p50)}   p99 ${milliseconds(podMs.p99)}   (goal ${goalMs.toFixed(0)} ms, 1.5 × podman run + 200 ms: ${met(podMs.p50 <= goalMs)})`,
    );
    console.log(
      `  podman run  p50 ${milliseconds(podmanMs.p50)}   p99 ${milliseconds(podmanMs.p99)}   ratio ${(podMs.p50 / podmanMs.p50).toFixed(2)}`,
    );
  }
} finally {
  await stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
