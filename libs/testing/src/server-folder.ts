import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const memory = '/dev/shm';
const tmpfs = 0x0102_1994;
const prefix = 'atoll-server-';
/** In the folder of a NATS server. */
export const natsPidFile = 'nats.pid';

/**
 * Makes a folder for data of a server that nobody will miss. It is in memory where Linux offers that and there is
 * plenty of it, and else, or where `TMPDIR` is set, in the temporary folder. A database is some 300 files: to create
 * and remove them on ext4 took a fifth of the processor time of specs.
 *
 * @param ownerPid The process that removes it. Where that process is killed, `removeAbandonedServerFolders` does.
 */
export function makeServerFolder(ownerPid = process.pid, parent = hasMemory() ? memory : tmpdir()): string {
  return mkdtempSync(join(parent, `${prefix}${ownerPid}-`));
}

function hasMemory(): boolean {
  if (process.env['TMPDIR'] !== undefined || process.platform !== 'linux') return false;
  try {
    accessSync(memory, constants.W_OK);
    const { type, bavail, bsize } = statfsSync(memory);
    // A whole run takes less than 1 GiB at any time.
    return type === tmpfs && bavail * bsize > 2 * 2 ** 30 && process.availableMemory() > 4 * 2 ** 30;
  } catch {
    return false;
  }
}

/** Removes the folders of processes that have ended without doing it, and ends what still runs there. */
export function removeAbandonedServerFolders(parents = [memory, tmpdir()]): void {
  for (const parent of parents) {
    for (const name of namesIn(parent)) {
      const owner = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1];
      if (owner !== undefined && !isAlive(Number(owner))) removeServerFolder(join(parent, name));
    }
  }
}

/**
 * Ends the PostgreSQL or NATS of the folder at once, if one runs there, and removes the folder. Several may do so at
 * the same time.
 */
export function removeServerFolder(folder: string): void {
  for (const place of ['postgres', 'postgres/postgres']) endServer(join(folder, place, 'postmaster.pid'), 'SIGQUIT');
  endServer(join(folder, natsPidFile), 'SIGKILL');
  // A server that ends still removes files of its own, at which Node stops half-way, in silence or not. What is left
  // after 2 s is the next run's.
  for (let attempt = 0; attempt < 40; attempt += 1) {
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // Once more.
    }
    if (!existsSync(folder)) return;
    pause(50);
  }
}

/** Blocks this process: at its exit nothing can be awaited. */
function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

function endServer(pidFile: string, signal: NodeJS.Signals): void {
  try {
    // PostgreSQL adds its data folder.
    const [pid = '', folder = dirname(pidFile)] = readFileSync(pidFile, 'utf8').split('\n');
    // The id may be another process's by now.
    if (commandLineOf(pid).includes(folder)) process.kill(Number(pid), signal);
  } catch {
    // None was started, or it has ended.
  }
}

/** Throws where there is no such process, or no way to tell. */
function commandLineOf(pid: string): string {
  return process.platform === 'linux'
    ? readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    : execFileSync('ps', ['-ww', '-o', 'args=', '-p', pid], { encoding: 'utf8', stdio: 'pipe' });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Whether a process of this id runs, of whichever user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
