import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { natsPings } from '@atoll/rpc';
import { withPatience } from '@atoll/waiting';
import { findNatsServer } from './find-nats-server.js';
import { freePort } from './free-port.js';
import { makeServerFolder, natsPidFile } from './server-folder.js';

export interface NatsServerOptions {
  /** Further lines of the server's configuration, such as `max_payload: 65536`. */
  configuration?: string;
  /** Where JetStream stores, kept at the end; a folder that is removed unless given. */
  storeDir?: string;
  /**
   * Told the process of each server as soon as there is one, before it answers, and also of one that then fails to
   * start. If it throws, the server is ended.
   */
  onSpawn?: (pid: number) => void;
  /** Told when the server that was started first ends by itself. */
  onExit?: () => void;
}

/** A real nats-server with JetStream on loopback, for specs, and for a platform of several processes on one machine. */
export interface NatsServer {
  readonly url: string;
  readonly port: number;
  /** Of the process that runs now. */
  readonly pid: number;
  /** Ends it and removes what it stored, unless that was given a folder. */
  stop(): Promise<void>;
  /** Ends it as a crash does. `restart` brings it back. */
  kill(): Promise<void>;
  /** Ends it if it runs, and starts it again on the same port with what JetStream had stored. */
  restart(): Promise<void>;
  /** Freezes it: connections stay open and nothing answers. Resolves once it is so. */
  pause(): Promise<void>;
  resume(): void;
}

interface Starting {
  binary: string;
  folder: string;
  storeDir: string;
  onSpawn: ((pid: number) => void) | undefined;
}

const portAttempts = 20;
/** One that cannot start ends by itself. */
const startTimeoutMs = 60_000;
const greetingTimeoutMs = 100;

/** Starts a nats-server of its own on a free port, and ends it with this process at the latest. */
export async function startNats(options: NatsServerOptions = {}): Promise<NatsServer> {
  const binary = await findNatsServer();
  const folder = makeServerFolder();
  await writeFile(join(folder, 'nats.conf'), natsPings + (options.configuration ?? ''));
  const starting: Starting = { binary, folder, storeDir: options.storeDir ?? folder, onSpawn: options.onSpawn };
  const started = await startOnFreePort(starting);
  const { port } = started;
  let { child } = started;
  let ending = false;
  child.once('exit', () => ending || options.onExit?.());

  const kill = async (): Promise<void> => {
    ending = true;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    get pid() {
      return child.pid ?? 0;
    },
    kill,
    async stop() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
    async restart() {
      await kill();
      child = await start(starting, port);
    },
    async pause() {
      child.kill('SIGSTOP');
      while (await greets(port)) await delay(10);
    },
    resume: () => void child.kill('SIGCONT'),
  };
}

async function startOnFreePort(starting: Starting): Promise<{ child: ChildProcess; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    try {
      return { child: await start(starting, port), port };
    } catch (error) {
      if (attempt === portAttempts) throw error;
    }
  }
}

/** Resolves when the server accepts connections: it then writes the file with its ports. */
async function start({ binary, folder, storeDir, onSpawn }: Starting, port: number): Promise<ChildProcess> {
  const flags = [
    '-a',
    '127.0.0.1',
    '-p',
    String(port),
    '-js',
    '-sd',
    storeDir,
    '--ports_file_dir',
    folder,
    '--pid',
    join(folder, natsPidFile),
    '-c',
    join(folder, 'nats.conf'),
  ];
  const child = spawn(binary, flags, {
    stdio: ['ignore', 'ignore', 'pipe'],
    // Its own process group: Ctrl-C in the terminal reaches this process, which still needs the broker to end its work.
    detached: true,
  });
  const endWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithUs);
  child.once('exit', () => process.off('exit', endWithUs));
  try {
    if (child.pid !== undefined) onSpawn?.(child.pid);
  } catch (error) {
    child.kill('SIGKILL');
    await once(child, 'exit');
    throw error;
  }
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-4000)));

  const deadlineAtMs = Date.now() + startTimeoutMs;
  const portsFile = join(folder, `nats-server_${child.pid}.ports`);
  while (!(await isWritten(portsFile))) {
    const ended = child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
    if (ended || Date.now() > deadlineAtMs) {
      child.kill('SIGKILL');
      throw new Error(`nats-server did not start: ${log}`);
    }
    await delay(10);
  }
  return child;
}

/** A server that runs says its name to whoever connects. */
async function greets(port: number): Promise<boolean> {
  const socket = createConnection(port, '127.0.0.1');
  try {
    const greeting = once(socket, 'data').then(() => true);
    return await withPatience(greeting, greetingTimeoutMs, false);
  } finally {
    socket.destroy();
  }
}

async function isWritten(file: string): Promise<boolean> {
  try {
    JSON.parse(await readFile(file, 'utf8'));
    return true;
  } catch {
    return false;
  }
}
