import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
}

/** Storage and settings of one Podman service, apart from those of any other on this machine. */
export interface PodmanFolder {
  readonly path: string;
  readonly root: string;
  readonly socketPath: string;
  /** For the working directory of the service, into which conmon writes. */
  readonly scratch: string;
  /** What each `podman` command of this storage begins with. */
  readonly flags: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

let made = 0;

export function createPodmanFolder({ registry, diskBytes }: PodmanOptions): PodmanFolder {
  const folder = folderAt(mkdtempSync(join(tmpdir(), prefix)));
  mkdirSync(folder.root);
  mkdirSync(folder.scratch);
  if (diskBytes) execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskBytes}`, 'tmpfs', folder.root]);
  writeFileSync(join(folder.path, 'owner'), String(process.pid));
  // Addresses of its own for each service: Podman avoids only those that are in use at the moment.
  made += 1;
  writeFileSync(join(folder.path, 'containers.conf'), configuration(64 + ((process.pid + made) % 180)));
  writeFileSync(join(folder.path, 'registries.conf'), registry ? `[[registry]]\nlocation = "${registry}"\ninsecure = true\n` : '');
  return folder;
}

function folderAt(path: string): PodmanFolder {
  const inside = (name: string) => join(path, name);
  return {
    path,
    root: inside('root'),
    socketPath: inside('podman.sock'),
    scratch: inside('scratch'),
    flags: [
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
export async function removePodmanFolder({ path, flags, env }: PodmanFolder): Promise<void> {
  for (const words of removals) await repeat(() => run('podman', [...flags, ...words], { env, cwd: path }));
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
export function removePodmanFolderNow({ path, flags, env }: PodmanFolder): void {
  const attempt = (command: string, words: readonly string[]) => {
    try {
      execFileSync(command, words, { env, cwd: path, stdio: 'ignore', timeout: 30_000 });
    } catch {
      // What is left is removed by `removeLeftPodmanFolders` of a later run.
    }
  };
  for (const words of removals) attempt('podman', [...flags, ...words]);
  for (const mount of mountsBelow(path)) attempt('umount', ['--lazy', mount]);
  rmSync(path, { recursive: true, force: true });
}

/** Removes the folders of processes that were killed, with the services and containers that still run there. */
export async function removeLeftPodmanFolders(): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(prefix))) {
    const folder = folderAt(join(tmpdir(), name));
    if (!isAbandoned(folder)) continue;
    const service = readNumber(join(folder.path, 'service'));
    if (service && commandOf(service).includes(folder.path)) process.kill(service, 'SIGKILL');
    await removePodmanFolder(folder);
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

function isAbandoned({ path }: PodmanFolder): boolean {
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
