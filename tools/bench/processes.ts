import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

const root = new URL('../../..', import.meta.url);
const running = new Set<ChildProcess>();

/** A built entry point in a process of its own, its log thrown away. */
export function start(entry: string, args: string[], env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, [`dist/${entry}`, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.on('data', () => undefined);
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** The first line that a process prints. */
export async function firstLine(child: ChildProcess): Promise<string> {
  const [chunk] = (await once(child.stdout ?? child, 'data')) as [Buffer];
  return chunk.toString().trim();
}

export async function untilReady(url: string): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    if ((await fetch(url).catch(() => null))?.ok) return;
    await delay(50);
  }
  throw new Error(`${url} did not become ready`);
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

export async function stopAll(): Promise<void> {
  await Promise.all([...running].map(stop));
}

/** Resident memory of one process in MiB, as the kernel counts it. */
export async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}
