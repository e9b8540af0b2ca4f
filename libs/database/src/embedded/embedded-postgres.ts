import { mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { chooseAccount } from './account.js';
import { findBinaries } from './binaries.js';
import { passwordFileOf, prepareCluster, roleName } from './cluster.js';
import { lockDataFolder } from './data-lock.js';
import { leftoverPostmaster, portOf, retirePidFile, startPostmaster, stopPostmaster, tell } from './postmaster.js';

export interface EmbeddedPostgresOptions {
  /** Where everything is kept between starts. Made, for this user alone, if it is missing. */
  dataDir: string;
  /** Sentences for whoever started the process: what was found amiss and put right. */
  onNotice?: (notice: string) => void;
  /** Told once if the server ends without having been stopped, with the name of its log. */
  onExit?: (reason: string) => void;
  /** Whether the server outlives this process, for whoever else ends it. It ends with this process unless given. */
  outlivesProcess?: boolean;
  /** Trades safety for speed: for specs, whose data nobody will miss. */
  fast?: boolean;
  /**
   * A folder that keeps what the first data folder began with, its password included; the others are copies of it. For
   * specs, as `fast` is.
   */
  keptIn?: string;
  /** A free port unless given. */
  port?: number;
}

export interface EmbeddedPostgres {
  /** `postgres://…` with the password. The port is another at each start. */
  url: string;
  /** The server's main process. */
  pid: number;
  /** Ends all sessions, waits until the server is gone, gives the folder free. Any number of calls. */
  stop(): Promise<void>;
}

/**
 * Starts the PostgreSQL that npm installed, on 127.0.0.1 alone. Throws an Error for people to read: the folder is in
 * use (and by which process), no binaries for this platform, no account to run as, or whatever the server itself said.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { onNotice = () => undefined, fast = false, keptIn, outlivesProcess, port } = options;
  const binaries = findBinaries();
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const dataDir = realpathSync(options.dataDir);
  const folder = join(dataDir, 'postgres');
  const unlock = lockDataFolder(dataDir);
  try {
    const leftover = leftoverPostmaster(folder);
    if (leftover !== undefined) {
      onNotice(`Stopping PostgreSQL (process ${leftover}), left by a start that was killed.`);
      await stopPostmaster(leftover);
    }
    retirePidFile(folder);
    const account = chooseAccount(dataDir, folder, binaries, outlivesProcess);
    const { password } = prepareCluster(dataDir, folder, account, binaries, { fast, keptIn });
    const logFile = join(dataDir, 'postgres.log');
    const server = await startPostmaster({
      folder,
      logFile,
      account,
      binary: binaries.postgres,
      fast,
      ...(port !== undefined && { port }),
    });
    return supervise(server, urlOf(password, server.port), unlock, { ...options, logFile });
  } catch (error) {
    unlock();
    throw error;
  }
}

/**
 * Where the server of a data folder listens while another process runs it; undefined while none does. For tools beside
 * a running platform.
 */
export function runningPostgresUrl(dataDir: string): string | undefined {
  const folder = join(dataDir, 'postgres');
  if (leftoverPostmaster(folder) === undefined) return undefined;
  return urlOf(readFileSync(passwordFileOf(dataDir), 'utf8').trim(), portOf(folder));
}

function urlOf(password: string, port: number): string {
  return `postgres://${roleName}:${password}@127.0.0.1:${port}/${roleName}`;
}

function supervise(
  server: Awaited<ReturnType<typeof startPostmaster>>,
  url: string,
  unlock: () => void,
  { onExit, outlivesProcess = false, logFile }: EmbeddedPostgresOptions & { logFile: string },
): EmbeddedPostgres {
  const { child, pid } = server;
  let stopping: Promise<void> | undefined;
  // The last resort where the process ends without `stop`; nothing can be waited for any more.
  const atExit = () => tell(pid, 'SIGINT');
  if (!outlivesProcess) process.once('exit', atExit);
  child.once('exit', (code, signal) => {
    process.off('exit', atExit);
    const how = signal ?? `exit code ${code}`;
    if (!stopping) onExit?.(`PostgreSQL (process ${pid}) ended by itself: ${how}. Its log: ${logFile}`);
  });
  const stop = async () => {
    await stopPostmaster(pid);
    unlock();
  };
  return { url, pid, stop: () => (stopping ??= stop()) };
}
