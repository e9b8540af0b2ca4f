import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { cachePath } from './machine.js';

const run = promisify(execFile);
const prefix = 'atoll-podman-';

/** Made by tools/test-setup.sh: images that every service reads beside its own. */
export const imageStore = cachePath('base-1.images');

export interface PodmanOptions {
  /** `127.0.0.1:5000`: a registry that is asked without TLS. */
  registry?: string;
  /** Keeps containers and volumes on a file system of this size, which a spec can fill. */
  diskBytes?: number;
  /** Has bridges and a firewall of its own: nothing that others on this machine start or end changes them, and no port of it is reached from here. */
  hasOwnNetwork?: boolean;
}

/** Storage and settings of one Podman service, apart from those of any other on this machine. */
export interface PodmanFolder {
  readonly path: string;
  readonly root: string;
  readonly socketPath: string;
  /** What each command on this storage begins with: the program, then its words. */
  readonly podman: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
}

let made = 0;

export function createPodmanFolder({ registry, diskBytes, hasOwnNetwork = false }: PodmanOptions): PodmanFolder {
  const path = mkdtempSync(join(tmpdir(), prefix));
  const inside = (name: string) => join(path, name);
  for (const name of ['root', 'scratch', 'networking']) mkdirSync(inside(name));
  if (diskBytes) execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskBytes}`, 'tmpfs', inside('root')]);
  writeFileSync(inside('owner'), String(process.pid));
  // Addresses of its own for each service: Podman avoids only those that are in use at the moment.
  made += 1;
  writeFileSync(inside('containers.conf'), configuration(64 + ((process.pid + made) % 180)));
  writeFileSync(inside('registries.conf'), registry ? `[[registry]]\nlocation = "${registry}"\ninsecure = true\n` : '');
  if (hasOwnNetwork) writeFileSync(inside('own-network'), '');
  return folderAt(path);
}

function folderAt(path: string): PodmanFolder {
  const inside = (name: string) => join(path, name);
  const namespaces = `/proc/${namespacesHolder(path)}/ns`;
  return {
    path,
    root: inside('root'),
    socketPath: inside('podman.sock'),
    podman: [
      // conmon writes into its working directory.
      ...(['nsenter', `--mount=${namespaces}/mnt`, `--net=${namespaces}/net`, 'env', `--chdir=${inside('scratch')}`, 'podman'] as const),
      ...['--root', inside('root'), '--runroot', inside('run'), '--tmpdir', inside('tmp'), '--network-config-dir', inside('networks')],
      ...['--storage-driver', 'overlay', '--storage-opt', `overlay.imagestore=${imageStore}`],
    ],
    env: {
      ...process.env,
      CONTAINERS_CONF: inside('containers.conf'),
      CONTAINERS_REGISTRIES_CONF: inside('registries.conf'),
      TMPDIR: inside('scratch'),
    },
  };
}

/**
 * Podman keeps the addresses and names of containers in one folder of the machine, and one process resolves the names of them all. Where several services work
 * at once it has ended, Podman takes it for alive by its pid file, and from then on no name is resolved for any of them. So each service sees a folder of its
 * own in the place of that one, in mounts of its own that the process holds whose id this returns.
 */
function namespacesHolder(path: string): number {
  const file = join(path, 'holder');
  const known = readNumber(file);
  if (known !== undefined && commandOf(known).includes(path)) return known;
  const hold =
    'mkdir -p /run/containers && mount --bind "$0/networking" /run/containers && { tail -f "$0/owner" </dev/null >/dev/null 2>&1 & echo $!; }';
  const unshared = existsSync(join(path, 'own-network')) ? ['--mount', '--net'] : ['--mount'];
  const holder = Number(execFileSync('unshare', [...unshared, 'sh', '-c', hold, path]));
  writeFileSync(file, String(holder));
  return holder;
}

/** Locks are files: in shared memory they are one table for all services of a machine, and a service that is killed leaks its entries. */
const configuration = (secondByte: number) => `[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
lock_type = "file"
events_logger = "file"
cgroup_manager = "cgroupfs"
exit_command_delay = 5
[network]
default_subnet_pools = [{ "base" = "10.${secondByte}.0.0/16", "size" = 24 }]
`;

const removals = [
  ['rm', '--all', '--force', '--time', '0'],
  ['volume', 'rm', '--all', '--force'],
  ['network', 'prune', '--force'],
];

/** Removes every container, volume and network, then the folder. */
export async function removePodmanFolder({ path, podman, env }: PodmanFolder): Promise<void> {
  const [program, ...flags] = podman;
  for (const words of removals) await repeat(() => run(program, [...flags, ...words], { env }));
  endHelpers(path);
  await repeat(async () => {
    for (const mount of mountsBelow(path)) await run('umount', ['--lazy', mount]).catch(() => undefined);
    await rm(path, { recursive: true, force: true });
  });
}

/**
 * Podman refuses to remove a container on whose network another one stands that ends at that very moment. What cleans up
 * after a container that has ended runs by itself for some seconds more, and mounts the storage once more.
 */
async function repeat(attempt: () => Promise<unknown>): Promise<void> {
  for (let left = 100; ; left -= 1) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (left === 0) throw error;
      await delay(100);
    }
  }
}

/** The same at the exit of the process, where nothing can be awaited. */
export function removePodmanFolderNow({ path, podman: [program, ...flags], env }: PodmanFolder): void {
  const attempt = (command: string, words: readonly string[]) => {
    try {
      execFileSync(command, words, { env, stdio: 'ignore', timeout: 30_000 });
    } catch {
      // What is left is removed by `removeLeftPodmanFolders` of a later run.
    }
  };
  for (const words of removals) attempt(program, [...flags, ...words]);
  endHelpers(path);
  for (const mount of mountsBelow(path)) attempt('umount', ['--lazy', mount]);
  rmSync(path, { recursive: true, force: true });
}

/** Removes the folders of processes that were killed, with the services and containers that still run there. */
export async function removeLeftPodmanFolders(): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(prefix))) {
    const path = join(tmpdir(), name);
    if (!isAbandoned(path)) continue;
    const service = readNumber(join(path, 'service'));
    if (service && commandOf(service).includes(path)) process.kill(service, 'SIGKILL');
    await removePodmanFolder(folderAt(path));
  }
}

/** Those who hold the mounts and resolve the names. */
function endHelpers(path: string): void {
  for (const file of ['holder', 'networking/networks/aardvark-dns/aardvark.pid']) {
    const pid = readNumber(join(path, file));
    if (pid && /^(tail|.*aardvark-dns)\0/.test(commandOf(pid))) process.kill(pid, 'SIGKILL');
  }
}

/** The deepest first. A service that is killed leaves the mount of its storage. */
function mountsBelow(path: string): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  return mounts
    .flatMap((line) => line.split(' ')[1] ?? [])
    .filter((point) => point.startsWith(`${path}/`))
    .toReversed();
}

function isAbandoned(path: string): boolean {
  const owner = readNumber(join(path, 'owner'));
  return owner !== undefined && commandOf(owner) === '';
}

function readNumber(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Empty where no such process runs. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
