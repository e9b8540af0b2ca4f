import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from './server-folder.js';

/** A file for each thing that was given away, with the number of the process that has it. */
const folder = join(tmpdir(), `atoll-ports-${process.getuid?.() ?? 'windows'}`);

/**
 * Which process has this thing of the machine, a port or a range of addresses, until it ends: this one from now on,
 * this one since before, or another. Of two processes that find the claim of a dead one at the same moment both may
 * have it; that is as rare as harmless.
 */
export function claim(name: string): 'now' | 'before' | 'another' {
  const file = join(folder, name);
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
  } catch {
    const owner = Number(readFileSync(file, 'utf8'));
    if (owner === process.pid) return 'before';
    if (isAlive(owner)) return 'another';
    writeFileSync(file, String(process.pid));
  }
  return 'now';
}
