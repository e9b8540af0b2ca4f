import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startEmbeddedPostgres } from '@atoll/database';
import { loadLocalSecrets } from '@atoll/service';
import { freePort, startNats } from '@atoll/testing';

/**
 * `npm run start:services`: the platform as an operator runs it, on one machine. A process for each service and one for the gateway, over NATS.
 * What is not given (`NATS_URL`, `DATABASE_URL`) is started here, on loopback.
 */
const services = ['teams', 'billing', 'gpuaas', 'gateway'];
/** `ATOLL_REPLICAS=teams=2`: how many processes of a service there are; one unless said. */
const replicas = new Map(
  (process.env.ATOLL_REPLICAS ?? '').split(',').map((entry) => {
    const [service = '', count = ''] = entry.split('=');
    return [service, Number(count)];
  }),
);
const restartAfterMs = 1_000;
const killAfterMs = 20_000;

const dataDir = resolve(process.env.ATOLL_DATA_DIR ?? '.atoll');
const secrets = loadLocalSecrets(dataDir);
const stopping = new AbortController();
const children = new Map<string, ChildProcess>();

/** Runs one process and starts it again whenever it dies, as a container's restart policy does. */
async function keepRunning(service: string, env: NodeJS.ProcessEnv, name = service): Promise<void> {
  while (!stopping.signal.aborted) {
    const child = spawn(process.execPath, [`dist/apps/${service}/src/main.js`], {
      cwd: new URL('../..', import.meta.url),
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
      // A Ctrl-C reaches this process alone, which then stops the others in order.
      detached: true,
    });
    children.set(name, child);
    console.log(`${name}: process ${child.pid}`);
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    children.delete(name);
    if (stopping.signal.aborted) return;
    console.error(`${name} ended (${signal ?? `code ${code}`}); it starts again in ${restartAfterMs} ms`);
    await delay(restartAfterMs, undefined, { signal: stopping.signal }).catch(() => undefined);
  }
}

async function stopProcess(child: ChildProcess | undefined): Promise<void> {
  if (!child) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const patience = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  await ended;
  clearTimeout(patience);
}

/** Without what all of them stand on there is nothing to supervise: whoever started this starts it again. */
function endWithout(reason: string): void {
  console.error(reason);
  process.exitCode = 1;
  void stop();
}

function refuse(error: unknown): never {
  console.error(`Atoll cannot start: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}

const postgres = process.env.DATABASE_URL ? null : await startEmbeddedPostgres({ dataDir, onExit: endWithout }).catch(refuse);
// What is under way between services outlives a restart, as their databases do.
const nats = process.env.NATS_URL
  ? null
  : await startNats({ storeDir: join(dataDir, 'jetstream'), onExit: () => endWithout('nats-server ended by itself.') }).catch(refuse);
const shared: NodeJS.ProcessEnv = {
  ...process.env,
  DATABASE_URL: process.env.DATABASE_URL ?? postgres?.url,
  NATS_URL: process.env.NATS_URL ?? nats?.url,
  ATOLL_BUS_SECRET: process.env.ATOLL_BUS_SECRET ?? secrets.busSecret,
  ATOLL_KEY_PEPPER: process.env.ATOLL_KEY_PEPPER ?? secrets.keyPepper,
};

let stopped = false;
async function stop(): Promise<void> {
  if (stopped) process.exit(1);
  stopped = true;
  stopping.abort();
  // The door first, then what stands behind it.
  await stopProcess(children.get('gateway'));
  await Promise.all([...children.values()].map(stopProcess));
  await nats?.stop();
  await postgres?.stop();
  process.exit();
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop());

async function announce(): Promise<void> {
  const url = `http://127.0.0.1:${process.env.PORT ?? '3000'}`;
  for (const address of [url, ...healthPorts.map((port) => `http://127.0.0.1:${port}`)]) {
    while (!(await fetch(`${address}/readyz`).catch(() => null))?.ok) await delay(100, undefined, { signal: stopping.signal });
  }
  console.log(`\nAtoll is ready, in ${services.length} processes over ${shared.NATS_URL}\n\n  API   ${url}/api\n  Docs  ${url}/api/docs\n`);
}

const healthPorts: string[] = [];
for (const service of services) {
  if (service === 'gateway') {
    void keepRunning(service, shared);
    continue;
  }
  for (let replica = 1; replica <= (replicas.get(service) ?? 1); replica++) {
    const port = String(await freePort());
    healthPorts.push(port);
    void keepRunning(service, { ...shared, HEALTH_PORT: port }, replica === 1 ? service : `${service} ${replica}`);
  }
}
await announce().catch(() => undefined);
