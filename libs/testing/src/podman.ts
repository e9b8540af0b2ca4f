import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { claim } from './claims.js';
import { answers, type ContainerEngine } from './container-engine.js';
import { cachePath } from './machine.js';
import { createPodmanFolder, removePodmanFolder, type PodmanFolder, type PodmanOptions } from './podman-folder.js';
import { signal } from './process-tree.js';
import { timeoutFactor } from './timeout-factor.js';

const run = promisify(execFile);
/** Second bytes of 10.0.0.0/8. */
const subnets = { first: 64, count: 180 };
const startTimeoutMs = 20_000 * timeoutFactor;
/** Made by tools/test-setup.sh. */
const imageStore = cachePath('base-1.images');

/**
 * Debian with bash, procps, openssh-server, nginx with its stream module, socat and busybox: the image of pods and
 * doors in specs.
 */
export const podmanImage = 'localhost/atoll-base:1';

export interface Podman extends ContainerEngine {
  /** Of the service that runs now. */
  readonly pid: number;
  /** The folder of its containers and volumes. */
  readonly root: string;
  /** Ends the service as a crash does. Containers continue. */
  kill(): Promise<void>;
  /** Freezes the service: connections stay open and nothing answers. */
  pause(): void;
  resume(): void;
}

/** What this machine lacks for `startPodman`, as a sentence for `describeWhere`; undefined if nothing is missing. */
export function podmanLacks(): string | undefined {
  if (process.platform !== 'linux') return 'Podman runs on Linux only';
  if (process.getuid?.() !== 0) return 'these specs need root';
  const missing = ['podman', 'runc', 'conmon', 'catatonit', 'netavark', 'aardvark-dns'].filter(
    (name) => !isInstalled(name),
  );
  if (missing.length > 0) return `${missing.join(', ')} not found`;
  if (!existsSync(imageStore)) return `${imageStore} not found`;
  return undefined;
}

function isInstalled(name: string): boolean {
  const helpers = ['/usr/lib/podman', '/usr/libexec/podman', '/usr/libexec/catatonit'];
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...helpers];
  return folders.some((folder) => existsSync(join(folder, name)));
}

/** Starts a Podman service. Without `stop` it ends with the Jest run, or with this process. */
export async function startPodman(options: PodmanOptions = {}): Promise<Podman> {
  const folder = createPodmanFolder(imageStore, options, options.hasOwnNetwork ? subnets.first : ownSubnets());
  // For benches: the `process` that Jest gives to specs emits no `exit`.
  const removeWithUs = (): void => removePodmanFolder(folder);
  process.once('exit', removeWithUs);
  const [program, ...flags] = folder.podman;
  let service = await startService(folder);
  return {
    socketPath: folder.socketPath,
    root: folder.root,
    get pid() {
      return service.pid ?? 0;
    },
    cli: async (...words) => (await run(program, [...flags, ...words], { env: folder.env })).stdout,
    kill: () => end(service),
    restart: async () => {
      await end(service);
      service = await startService(folder);
    },
    pause: () => suspend(service),
    resume: () => void service.kill('SIGCONT'),
    stop: async () => {
      await end(service);
      removePodmanFolder(folder);
      process.off('exit', removeWithUs);
    },
  };
}

/**
 * Returns once each thread has stopped: one that starts a program just now begins to stop the others only afterwards,
 * and they may answer meanwhile.
 */
function suspend({ pid = 0 }: ChildProcess): void {
  signal(pid, 'SIGSTOP');
  const untilMs = performance.now() + 10_000 * timeoutFactor;
  while (!threadsOf(pid).every((state) => state === 'T')) {
    if (performance.now() > untilMs) throw new Error('The service of Podman does not stop.');
  }
}

/** The state of each thread of a process, as `ps` shows it. */
function threadsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    try {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
      return stat.charAt(stat.lastIndexOf(')') + 2);
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}

/** Of each service that shares the network of the machine: Podman avoids only those that are in use at the moment. */
function ownSubnets(): number {
  for (let at = process.pid; at < process.pid + subnets.count; at += 1) {
    const secondByte = subnets.first + (at % subnets.count);
    if (claim(`10.${secondByte}.0.0`) === 'now') return secondByte;
  }
  throw new Error('More Podman services run than there are addresses for.');
}

async function startService({
  path,
  podman: [program, ...flags],
  env,
  socketPath,
}: PodmanFolder): Promise<ChildProcess> {
  const words = [...flags, 'system', 'service', '--time=0', `unix://${socketPath}`];
  const child = spawn(program, words, { env, stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  writeFileSync(join(path, 'service'), String(child.pid));
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-4000)));
  const untilMs = Date.now() + startTimeoutMs;
  while (!(await answers(socketPath))) {
    if (child.exitCode !== null || child.pid === undefined || Date.now() > untilMs) {
      await end(child);
      throw new Error(`Podman did not start: ${log}`);
    }
    await delay(20);
  }
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}
