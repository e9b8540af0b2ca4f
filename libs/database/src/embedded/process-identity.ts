import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * A process as distinct from a later one that got the same id: its id, and when it began. Empty when there is no such
 * process.
 */
export function startOf(pid: number): string {
  try {
    if (process.platform !== 'linux')
      return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // proc(5): behind the name, which may hold anything, in parentheses; the state is field 3 and the start, in ticks
    // since boot, field 22.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return '';
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${fields[19] ?? ''}`;
  } catch {
    return '';
  }
}

export function commandLineOf(pid: number): string {
  try {
    if (process.platform !== 'linux')
      return execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}
