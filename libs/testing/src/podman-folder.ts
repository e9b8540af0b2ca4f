import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const prefix = 'atoll-podman-';

export interface PodmanOptions {
  /** `127.0.0.1:5000`: a registry that is asked without TLS. */
  registry?: string;
  /** Keeps containers and volumes on a file system of this size, which a spec can fill. */
  diskBytes?: number;
  /**
   * Has bridges and a firewall of its own: nothing that others on this machine start or end changes them, and no port
   * of it is reached from here.
   */
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

/**
 * The folder belongs to the Jest run (`ATOLL_TEST_RUN_OWNER`), whose workers may be killed, and outside of one to this
 * process: see `removeLeftPodmanFolders`.
 *
 * @param imageStore Images that the service reads beside its own.
 * @param secondByte Of the addresses of its networks, 10.x.0.0.
 */
export function createPodmanFolder(
  imageStore: string,
  { registry, diskBytes, hasOwnNetwork = false }: PodmanOptions,
  secondByte = 64,
): PodmanFolder {
  const path = mkdtempSync(join(tmpdir(), prefix));
  const inside = (name: string) => join(path, name);
  writeFileSync(inside('owner'), process.env['ATOLL_TEST_RUN_OWNER'] ?? String(process.pid));
  for (const name of ['root', 'scratch', 'networking']) mkdirSync(inside(name));
  if (diskBytes) execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskBytes}`, 'tmpfs', inside('root')]);
  symlinkSync(imageStore, inside('images'));
  writeFileSync(inside('containers.conf'), configuration(secondByte));
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
      ...([
        'nsenter',
        `--mount=${namespaces}/mnt`,
        `--net=${namespaces}/net`,
        'env',
        `--chdir=${inside('scratch')}`,
        'podman',
      ] as const),
      ...[
        '--root',
        inside('root'),
        '--runroot',
        inside('run'),
        '--tmpdir',
        inside('tmp'),
        '--network-config-dir',
        inside('networks'),
      ],
      ...['--storage-driver', 'overlay', '--storage-opt', `overlay.imagestore=${inside('images')}`],
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
 * Podman keeps the addresses and names of containers in one folder of the machine, and one process resolves the names
 * of them all. Where several services work at once it has ended, Podman takes it for alive by its pid file, and from
 * then on no name is resolved for any of them. So each service sees a folder of its own in the place of that one, in
 * mounts of its own that the process holds whose id this returns.
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

/**
 * Locks are files: in shared memory they are one table for all services of a machine, and a service that is killed
 * leaks its entries. The default network is one of these too: unless told otherwise Podman keeps all of 10.88.0.0/16
 * for it, and one service in 180 would have no other network.
 */
const configuration = (secondByte: number) => `[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
lock_type = "file"
events_logger = "file"
cgroup_manager = "cgroupfs"
exit_command_delay = 5
[network]
default_subnet = "10.${secondByte}.0.0/24"
default_subnet_pools = [{ "base" = "10.${secondByte}.0.0/16", "size" = 24 }]
`;

const removals = [
  ['rm', '--all', '--force', '--time', '0'],
  ['volume', 'rm', '--all', '--force'],
  ['network', 'prune', '--force'],
];

/**
 * Ends the service, removes every container, volume and network, then the folder. Blocks this process: at its exit
 * nothing can be awaited.
 */
export function removePodmanFolder({ path, podman: [program, ...flags], env }: PodmanFolder): void {
  endService(path);
  try {
    for (const words of removals)
      repeat(() => execFileSync(program, [...flags, ...words], { env, stdio: 'pipe', timeout: 30_000 }));
  } finally {
    repeat(() => endRest(path));
    endResolver(path);
  }
  repeat(() => {
    for (const mount of mountsBelow(path)) execFileSync('umount', ['--lazy', mount], { stdio: 'pipe' });
    rmSync(path, { recursive: true, force: true });
  });
}

/** Podman refuses to remove a container while another one on its network is ending. */
function repeat(attempt: () => void): void {
  for (let left = 100; ; left -= 1) {
    try {
      attempt();
      return;
    } catch (error) {
      if (left === 0) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    }
  }
}

/** Removes the folders of this process and of processes that have ended, with the containers that run there. */
export function removeLeftPodmanFolders(): void {
  // Nobody else has any.
  if (process.getuid?.() !== 0) return;
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(prefix))) {
    const path = join(tmpdir(), name);
    const owner = readNumber(join(path, 'owner'));
    if (!owner || (owner !== process.pid && commandOf(owner) !== '')) continue;
    try {
      removePodmanFolder(folderAt(path));
    } catch {
      // What is left is removed by a later run.
    }
  }
}

function endService(path: string): void {
  const service = readNumber(join(path, 'service'));
  if (service && commandOf(service).includes(path)) signal(service, 'SIGKILL');
}

/**
 * Kills the processes that name the folder on their command line, and their descendants. Throws where there were any:
 * they take a moment to end. Podman does not know a container whose start ended with the service, and conmon waits for
 * it for ever. The cleanup after a container that has ended runs for some seconds more, and mounts the storage again.
 */
function endRest(path: string): void {
  const named = readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid && commandOf(pid).includes(path));
  // A process that is stopped starts no other one.
  for (const pid of named) signal(pid, 'SIGSTOP');
  for (const pid of named.flatMap(withDescendants)) signal(pid, 'SIGKILL');
  if (named.length > 0) throw new Error(`Processes of ${path} still run: ${named.join(', ')}`);
}

/** The resolver of names. Its command line has a path that is the same for all services. */
function endResolver(path: string): void {
  const pid = readNumber(join(path, 'networking/networks/aardvark-dns/aardvark.pid'));
  if (pid && commandOf(pid).includes('aardvark-dns')) signal(pid, 'SIGKILL');
}

function withDescendants(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(withDescendants)];
}

function childrenOf(pid: number): number[] {
  try {
    const ofThreads = readdirSync(`/proc/${pid}/task`).map((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'),
    );
    return ofThreads.join('').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Nothing where it has ended since it was looked for. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
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
