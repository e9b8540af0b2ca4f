import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { backOffMs, type BackOff } from '@atoll/waiting';
import { environment, type Account } from './account.js';
import { commandLineOf, startOf } from './process-identity.js';

const pollMs = 10;
/** Recovery after a crash reads what was written since the last checkpoint. */
const startPatienceMs = 120_000;
const startBackOff: BackOff = { firstMs: 20, maxMs: 5_120, jitter: 0 };
const largestLogBytes = 4_000_000;

/**
 * What a small machine wants. Given at each start and not written into the data, so that a newer Atoll can change them.
 */
const settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  timezone: 'UTC',
  log_timezone: 'UTC',
  max_connections: '200',
  shared_buffers: '128MB',
  max_wal_size: '512MB',
  random_page_cost: '1.1',
  jit: 'off',
  // Errors of statements are the services' to log.
  log_min_messages: 'log',
  log_checkpoints: 'off',
};

/**
 * For data that nobody will miss. What is committed outlives a crash of the server, not one of the machine. Its shared
 * memory is in its data folder, so that nothing of a server that was killed is left when that is removed.
 */
const fastSettings = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off', dynamic_shared_memory_type: 'mmap' };

export interface PostmasterOptions {
  folder: string;
  logFile: string;
  account: Account;
  binary: string;
  fast: boolean;
  /** A free one unless given. */
  port?: number;
}

export interface Postmaster {
  child: ChildProcess;
  pid: number;
  port: number;
}

/** Starts the server and waits until it takes connections. Throws an Error that ends in what the server said. */
export async function startPostmaster(options: PostmasterOptions): Promise<Postmaster> {
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port ?? (await freePort());
    const logStart = statSync(options.logFile, { throwIfNoEntry: false })?.size ?? 0;
    const child = launch(options, port);
    const pid = child.pid;
    if (pid !== undefined && (await becomesReady(child, pid, options.folder))) return { child, pid, port };
    const said = readFileSync(options.logFile, 'utf8').slice(logStart);
    // Somebody else took the port meanwhile, or a killed server's children are still on their way out.
    const passes = (options.port === undefined && /could not bind/.test(said)) || /is still in use/.test(said);
    if (!passes || attempt === 10) throw new Error(`PostgreSQL did not start. ${said.trim()}`);
    await delay(backOffMs(startBackOff, attempt));
  }
}

/** Shuts a server down and waits: first by its own means, then by force. */
export async function stopPostmaster(pid: number): Promise<void> {
  const start = startOf(pid);
  const isGone = () => start === '' || startOf(pid) !== start;
  const steps: [NodeJS.Signals, number][] = [
    // Fast shutdown: sessions are ended, transactions rolled back.
    ['SIGINT', 30_000],
    // Immediate: the next start recovers.
    ['SIGQUIT', 5_000],
    ['SIGKILL', 5_000],
  ];
  for (const [signal, patienceMs] of steps) {
    if (isGone() || !tell(pid, signal)) return;
    // One that was stopped (Ctrl-Z, a debugger) hears nothing else.
    tell(pid, 'SIGCONT');
    const until = Date.now() + patienceMs;
    while (Date.now() < until) {
      if (isGone()) return;
      await delay(pollMs);
    }
  }
  throw new Error(`The PostgreSQL process ${pid} cannot be stopped.`);
}

/** The server that runs on this data folder, left by a process that was killed. */
export function leftoverPostmaster(folder: string): number | undefined {
  const pid = Number.parseInt(readPidFile(folder)[0] ?? '', 10);
  // The id may be another process's by now.
  return pid > 0 && startOf(pid) !== '' && commandLineOf(pid).includes(` -D ${folder} `) ? pid : undefined;
}

/** Larger than any process id that Linux or macOS hands out. */
const noProcess = '2147483647';

/**
 * Prepares the pid file of a server that is gone for the next start. PostgreSQL refuses to start where the file is
 * empty (a power cut) or names a process of the same user that got the id meanwhile. The rest of the file stays: by it
 * PostgreSQL notices sessions of the killed server that still run. Call it only while the data folder is locked and
 * `leftoverPostmaster` finds nothing.
 */
export function retirePidFile(folder: string): void {
  const file = join(folder, 'postmaster.pid');
  if (!existsSync(file)) return;
  const [pid = '', ...rest] = readPidFile(folder);
  if (!/^\d+$/.test(pid)) rmSync(file, { force: true });
  else writeFileSync(file, [noProcess, ...rest].join('\n'));
}

/** Where the server of this data folder listens: the fourth line of its pid file. */
export function portOf(folder: string): number {
  return Number.parseInt(readPidFile(folder)[3] ?? '', 10);
}

/** Whether there was such a process. */
export function tell(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

function launch({ folder, logFile, account, binary, fast }: PostmasterOptions, port: number): ChildProcess {
  const all = { ...settings, ...(fast && fastSettings), port: String(port) };
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const [file = binary, ...args] = [...account.prefix, binary, '-D', folder, ...flags];
  if ((statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) > largestLogBytes) renameSync(logFile, `${logFile}.1`);
  const log = openSync(logFile, 'a', 0o600);
  try {
    // Its own process group: Ctrl-C in the terminal reaches this process, which still needs the database to end its
    // work. Its log goes to a file, not to a pipe: it neither waits for a reader nor loses its voice with one.
    const child = spawn(file, args, {
      ...account.spawnAs,
      cwd: '/',
      env: environment,
      detached: true,
      stdio: ['ignore', log, log],
    });
    child.unref();
    child.on('error', () => undefined);
    return child;
  } finally {
    closeSync(log);
  }
}

async function becomesReady(child: ChildProcess, pid: number, folder: string): Promise<boolean> {
  const until = Date.now() + startPatienceMs;
  while (child.exitCode === null && child.signalCode === null && Date.now() < until) {
    const lines = readPidFile(folder);
    // The same look that pg_ctl takes: the eighth line is the state.
    if (lines[0] === String(pid) && lines[7]?.trim() === 'ready') return true;
    await delay(pollMs);
  }
  await stopPostmaster(pid);
  return false;
}

function readPidFile(folder: string): string[] {
  try {
    return readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return [];
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
