import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { startEmbeddedPostgres } from '@atoll/database';
import { freePort, startNats } from '@atoll/testing';
import { createDatabase } from './databases.js';
import { openLoop, percentile, type OpenLoopResult, type Shot } from './open-loop.js';
import { firstLine, start, stopAll, untilReady } from './processes.js';

/**
 * `npm run bench key-flood`: what callers with good keys notice of a flood of well-formed keys that nobody has. The
 * good callers send a steady load from addresses of their own, first alone and then beside the flood; some of them come
 * for the first time during the flood. Every run uses the default limits.
 */
const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '350' },
    seconds: { type: 'string', default: '20' },
    good: { type: 'string', default: '80' },
    only: { type: 'string' },
  },
});
const seconds = Number(values.seconds);
const goodPerSecond = Number(values.good);
const teams = 40;
const newcomers = 60;
const keyPepper = 'a pepper for benchmarks only';
const busSecret = 'a secret for benchmarks only';

interface Good {
  /** A key of each team, which is used all the time. */
  regulars: Shot[];
  /** Keys that are used once, during the flood. */
  newcomers: Shot[];
}

async function createTeam(port: number, adminKey: string, name: string, members: number): Promise<Shot[]> {
  const response = await fetch(`http://127.0.0.1:${port}/api/team`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name,
      members: Array.from({ length: members }, (_, at) => ({
        email: `${name}.${at}@example.com`,
        name,
        role: 'member',
      })),
    }),
  });
  if (!response.ok) throw new Error(`POST /api/team answered ${response.status}: ${await response.text()}`);
  const team = (await response.json()) as { id: string; members: { api_key: string }[] };
  return team.members.slice(1).map(({ api_key }, at) => ({
    path: `/api/team/${team.id}`,
    headers: { authorization: `Bearer ${api_key}`, 'x-forwarded-for': `192.0.2.${(at % 250) + 1}` },
  }));
}

async function createGood(port: number, adminKey: string): Promise<Good> {
  const regulars: Shot[] = [];
  for (let at = 0; at < teams; at++) regulars.push(...(await createTeam(port, adminKey, `team-${at}`, 1)));
  return { regulars, newcomers: await createTeam(port, adminKey, 'newcomers', newcomers) };
}

async function ask(port: number, { regulars }: Good): Promise<OpenLoopResult> {
  return openLoop(
    port,
    { perSecond: goodPerSecond, seconds },
    (index) => regulars[index % regulars.length] ?? { path: '/', headers: {} },
  );
}

async function flood(port: number, good: Good, addresses: number) {
  const options = { port, rate: values.rate, seconds: seconds + 1, addresses };
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const flooding = firstLine(start('tools/bench/invented-keys.js', args, {}));
  const shots = good.newcomers.splice(0, newcomers / 2);
  const [regulars, late] = await Promise.all([
    ask(port, good),
    openLoop(
      port,
      { perSecond: shots.length / seconds, seconds },
      (index) => shots[index] ?? { path: '/', headers: {} },
    ),
  ]);
  return { regulars, late, invented: JSON.parse(await flooding) as Record<string, number> };
}

const figures = ({ statuses, latenciesMs }: OpenLoopResult): string =>
  `${JSON.stringify(statuses).padEnd(24)} p50 ${percentile(latenciesMs, 0.5).toFixed(1).padStart(7)} ms   p99 ${percentile(latenciesMs, 0.99).toFixed(1).padStart(7)} ms`;

async function measure(port: number, adminKey: string): Promise<void> {
  await untilReady(`http://127.0.0.1:${port}/readyz`);
  const good = await createGood(port, adminKey);
  await ask(port, good);
  const alone = await ask(port, good);
  console.log(`  alone                       good ${figures(alone)}`);
  for (const addresses of [1, 10_000]) {
    const { regulars, late, invented } = await flood(port, good, addresses);
    const ratio = percentile(regulars.latenciesMs, 0.5) / percentile(alone.latenciesMs, 0.5);
    const name = `${values.rate}/s from ${addresses.toLocaleString('en')}`.padEnd(24);
    console.log(`  ${name}    good ${figures(regulars)}   p50 ${ratio.toFixed(2)} × (goal 3)`);
    console.log(`  ${''.padEnd(24)}     new ${figures(late)}   invented ${JSON.stringify(invented)}`);
  }
  await stopAll();
}

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });
const nats = await startNats();
const adminKey = createApiKey();
const common = { ATOLL_ADMIN_KEY: adminKey, ATOLL_KEY_PEPPER: keyPepper, TRUSTED_PROXIES: '127.0.0.1' };

async function oneProcess(): Promise<void> {
  const port = await freePort();
  const databaseUrl = await createDatabase(postgres.url, 'flood_one');
  const env = { ...common, DATABASE_URL: databaseUrl, PORT: String(port), ATOLL_DATA_DIR: join(folder, 'platform') };
  start('apps/platform/src/main.js', [], env);
  await measure(port, adminKey);
}

async function overNats(limitStore: string): Promise<void> {
  const port = await freePort();
  const databaseUrl = await createDatabase(postgres.url, `flood_${limitStore}`);
  const env = { ...common, DATABASE_URL: databaseUrl, NATS_URL: nats.url, ATOLL_BUS_SECRET: busSecret };
  const healthPort = await freePort();
  start('apps/teams/src/main.js', [], { ...env, HEALTH_PORT: String(healthPort) });
  await untilReady(`http://127.0.0.1:${healthPort}/readyz`);
  start('apps/gateway/src/main.js', [], { ...env, PORT: String(port), ATOLL_LIMIT_STORE: limitStore });
  await measure(port, adminKey);
}

const topologies: [string, () => Promise<void>][] = [
  ['one process', oneProcess],
  ['over NATS, limits in memory', () => overNats('memory')],
  ['over NATS, limits in NATS', () => overNats('nats')],
];

try {
  console.log(
    `${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}; ${goodPerSecond} good requests a second`,
  );
  for (const [name, run] of topologies) {
    if (values.only !== undefined && !name.includes(values.only)) continue;
    console.log(`\n${name}`);
    await run();
  }
} finally {
  await stopAll();
  await nats.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
