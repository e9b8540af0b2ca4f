import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startOf } from './process-identity.js';

/** A data folder belongs to one process at a time; this says to which. */
export class DataFolderInUseError extends Error {
  constructor(dataDir: string, pid: number) {
    super(`The data folder ${dataDir} is in use by process ${pid}.`);
  }
}

/**
 * Takes `atoll.pid` in the folder, or throws DataFolderInUseError. A file left by a process that is gone is taken over,
 * also when another process has its id by now. The file appears whole (it is linked into place), so nobody reads half
 * of one. Gives back the release.
 */
export function lockDataFolder(dataDir: string): () => void {
  const file = join(dataDir, 'atoll.pid');
  const mine = `${file}.${process.pid}`;
  const content = `${process.pid}\n${startOf(process.pid)}\n`;
  try {
    writeFileSync(mine, content, { mode: 0o644 });
    while (!link(mine, file)) {
      const found = read(file);
      const holder = holderOf(found);
      if (holder !== undefined) throw new DataFolderInUseError(dataDir, holder);
      takeAway(file, found, `${mine}.stale`);
    }
  } catch (error) {
    if (!isFull(error)) throw error;
    throw new Error(`The disk of the data folder ${dataDir} is full.`, { cause: error });
  } finally {
    rmSync(mine, { force: true });
  }
  return () => {
    if (read(file) === content) rmSync(file, { force: true });
  };
}

/**
 * Throws DataFolderInUseError where another process holds the folder now. Takes nothing: for a clear word before
 * anything is begun.
 */
export function requireFreeDataFolder(dataDir: string): void {
  const holder = holderOf(read(join(dataDir, 'atoll.pid')));
  if (holder !== undefined) throw new DataFolderInUseError(dataDir, holder);
}

function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function link(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** The process that wrote this, if it is alive. */
function holderOf(content: string): number | undefined {
  const [pid = '', start = ''] = content.split('\n');
  return start !== '' && startOf(Number(pid)) === start ? Number(pid) : undefined;
}

/** Removes a stale file, but not the one that another starter has put in its place meanwhile: that one goes back. */
function takeAway(file: string, stale: string, aside: string): void {
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (read(aside) !== stale) link(aside, file);
  rmSync(aside, { force: true });
}
