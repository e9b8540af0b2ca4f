import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { requireDatabase, startEmbeddedPostgres, type EmbeddedPostgres } from '@atoll/database';
import {
  DataFolderEnv,
  environmentWith,
  HttpEnv,
  listenersOf,
  loadLocalSecrets,
  natsAuthorization,
  natsUsers,
  newLocalSecrets,
  onStopSignals,
  publicHost,
  readSettings,
  requireFreePorts,
  ServiceEnv,
  shownHost,
} from '@atoll/service';
import { messageOf } from '@atoll/errors';
import { parseAddresses } from '@atoll/rpc';
import { freePort, startNats, type NatsServer } from '@atoll/testing';
import { IsString } from 'class-validator';
import { keepRunning } from './keep-running.js';
import { OwnProcesses } from './own-processes.js';
import { readReplicas } from './replicas.js';
import { gatewayDefinition, serviceDefinitions } from './service-definitions.js';
import { untilReady } from './until-ready.js';

/**
 * `npm run start:services`: the platform as an operator runs it, on one machine. A process for each service and one for
 * the gateway, over NATS. What is not given (`NATS_URL`, `DATABASE_URL`) is started here, on loopback.
 */
const definitions = await serviceDefinitions();
const services = definitions.map(({ name }) => name);
const restartAfterMs = 1_000;
const killAfterMs = 20_000;

class StartServicesEnv extends HttpEnv {
  @IsString()
  ATOLL_REPLICAS: string = '';
}

const stopping = new AbortController();
const children = new Map<string, ChildProcess>();

const { gatewaySettings: ofGateway, gatewayListeners } = await gatewayDefinition();
const ownSettings = {
  settings: StartServicesEnv,
  checks: ({ ATOLL_REPLICAS }: StartServicesEnv) => [() => readReplicas(ATOLL_REPLICAS, services)],
};
// All that is wrong at once, and of every process: one that refuses its settings would be started again for ever. A
// refused start leaves no secrets in the data folder, so any will do until then.
const read = (from: NodeJS.ProcessEnv) =>
  orRefuse(() =>
    readSettings([ownSettings, { settings: DataFolderEnv }, { settings: ServiceEnv }, ...ofGateway, ...definitions], {
      DATABASE_URL: 'postgres://embedded/atoll',
      ...from,
    }),
  );
const [env, { dataDir }, , ...ofProcesses] = await read(environmentWith(newLocalSecrets()));
const replicas = readReplicas(env.ATOLL_REPLICAS, services);
const own = await orRefuse(() =>
  OwnProcesses.takeOver(dataDir, (pid) => console.log(`Ending process ${pid}, left by a start that was killed`)),
);
const listeners = [
  ...gatewayListeners(env, ofProcesses[ofGateway.length - 1]),
  ...listenersOf(definitions, ofProcesses.slice(ofGateway.length)),
];
const ports = await orRefuse(() => requireFreePorts(listeners, 'npm run start:services'));
const [port = env.PORT] = ports;
const source = environmentWith(await orRefuse(() => loadLocalSecrets(dataDir)));
// Again, since what the data folder holds may be wrong too.
await read(source);
const settings: NodeJS.ProcessEnv = {
  ATOLL_PUBLIC_URL: `http://${publicHost(env.HOST)}:${port}`,
  ...source,
  PORT: String(port),
};

function start(service: string, env: NodeJS.ProcessEnv): ChildProcess {
  return spawn(process.execPath, [`dist/apps/${service}/src/main.js`], {
    cwd: new URL('../..', import.meta.url),
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
    // A Ctrl-C reaches this process alone, which then stops the others in order.
    detached: true,
  });
}

function supervise(service: string, env: NodeJS.ProcessEnv, name = service): void {
  void keepRunning(name, () => start(service, env), {
    own,
    children,
    stopping: stopping.signal,
    restartAfterMs,
    tell: (line, problem) => (problem ? console.error(line) : console.log(line)),
  });
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

async function orRefuse<T>(attempt: () => T | Promise<T>): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    console.error(`Atoll cannot start: ${messageOf(error)}`);
    process.exit(1);
  }
}

/** A user of NATS for each service, with a password that is new at each start. */
const passwords = new Map<string, string>();
function passwordOf(name: string): string {
  const password = passwords.get(name) ?? randomBytes(24).toString('base64url');
  passwords.set(name, password);
  return password;
}

let startingPostgres: Promise<EmbeddedPostgres> | undefined;
let startingNats: Promise<NatsServer> | undefined;
// Before anything is started: what a signal finds starting is stopped too.
onStopSignals(
  () => void stop(),
  () => {
    for (const child of children.values()) child.kill('SIGKILL');
    process.exit(1);
  },
);

if (!source.DATABASE_URL) startingPostgres = orRefuse(() => startEmbeddedPostgres({ dataDir, onExit: endWithout }));
const postgres = await startingPostgres;
// What is under way between services outlives a restart, as their databases do.
if (!source.NATS_URL && !stopping.signal.aborted)
  startingNats = orRefuse(() =>
    startNats({
      storeDir: join(dataDir, 'jetstream'),
      configuration: natsAuthorization(natsUsers(services), (name) => JSON.stringify(passwordOf(name))),
      onSpawn: (pid) => own.add(pid),
      onExit: () => endWithout('nats-server ended by itself.'),
    }),
  );
const nats = await startingNats;
// What a process says of its database as it ends, it would say again and again.
if (source.DATABASE_URL && !stopping.signal.aborted)
  await requireDatabase({ url: source.DATABASE_URL }, services, (line) => console.error(line)).catch((error: unknown) =>
    endWithout(`Atoll cannot start: ${messageOf(error)}`),
  );
const shared: NodeJS.ProcessEnv = { ...settings, DATABASE_URL: source.DATABASE_URL ?? postgres?.url };

/** The environment of a service or the gateway, with its own user of NATS where that was started here. */
function envOf(name: string): NodeJS.ProcessEnv {
  if (!nats) return shared;
  const url = new URL(nats.url);
  [url.username, url.password] = [name, passwordOf(name)];
  return { ...shared, NATS_URL: url.href };
}

async function stop(): Promise<void> {
  if (stopping.signal.aborted) return;
  stopping.abort();
  // The door first, then what stands behind it.
  await stopProcess(children.get('gateway'));
  await Promise.all([...children.values()].map(stopProcess));
  await (await startingNats)?.stop();
  await (await startingPostgres)?.stop();
  process.exit();
}

/** Without the password that each may hold. */
function placesOf(natsUrl: string): string {
  return [parseAddresses(natsUrl.split(',')).servers ?? []].flat().join(', ');
}

async function announce(): Promise<void> {
  const url = `http://${shownHost(env.HOST)}:${port}`;
  await untilReady(new Map([...addresses, ['gateway', url]]), {
    signal: stopping.signal,
    tell: (line) => console.error(line),
  });
  console.log(`
Atoll is ready, in ${addresses.size + 1} processes over ${source.NATS_URL ? placesOf(source.NATS_URL) : nats?.url}

  Console  ${shared.ATOLL_PUBLIC_URL}/
  API      ${url}/api
  Docs     ${url}/api/docs
  Data     ${dataDir}
`);
}

/** Of the services, by the name of the process. */
const addresses = new Map<string, string>();
for (const [service, count] of replicas) {
  for (let replica = 1; replica <= count; replica++) {
    // Nobody listens on the others yet, so they look free too.
    let healthPort = port;
    while (ports.includes(healthPort)) healthPort = await freePort();
    const name = replica === 1 ? service : `${service} ${replica}`;
    addresses.set(name, `http://${shownHost(env.HOST)}:${healthPort}`);
    supervise(service, { ...envOf(service), HEALTH_PORT: String(healthPort) }, name);
  }
}
supervise('gateway', envOf('gateway'));
await announce().catch(() => undefined);
