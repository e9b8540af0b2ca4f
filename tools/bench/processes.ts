import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

const root = new URL('../../..', import.meta.url);
const running = new Set<ChildProcess>();

/** Of 50 ms each: 2 minutes, on a machine that others keep busy. */
const patience = 2_400;
/** One for all processes that follow each other on a database. */
const sealKeys = `bench:${Buffer.alloc(32, 'for benchmarks only').toString('base64')}`;

/** A built entry point in a process of its own, its log thrown away. */
export function start(entry: string, args: string[], env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, [`dist/${entry}`, ...args], {
    cwd: root,
    env: { ...process.env, ATOLL_SEAL_KEYS: sealKeys, ...env },
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
  for (let attempt = 0; attempt < patience; attempt++) {
    if ((await fetch(url).catch(() => null))?.ok) return;
    await delay(50);
  }
  throw new Error(`${url} did not become ready`);
}

/** The operator is made last of all that a platform starts with, by a service that the gateway does not wait for. */
export async function untilOperator(url: string, adminKey: string): Promise<void> {
  const headers = { authorization: `Bearer ${adminKey}` };
  for (let attempt = 0; attempt < patience; attempt++) {
    if ((await fetch(`${url}/api/user/profile`, { headers }).catch(() => null))?.ok) return;
    await delay(50);
  }
  throw new Error(`${url} did not come to know its operator`);
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
