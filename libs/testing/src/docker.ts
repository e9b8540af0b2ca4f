import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { answers, type ContainerEngine } from './container-engine.js';
import { cachePath } from './machine.js';
import { podmanImage, podmanLacks } from './podman.js';
import { childrenOf, signal } from './process-tree.js';
import { makeServerFolder, removeServerFolder } from './server-folder.js';
import { timeoutFactor } from './timeout-factor.js';

const run = promisify(execFile);
const startTimeoutMs = 60_000 * timeoutFactor;
/** Made by tools/test-setup.sh: the programs of Docker, which is not installed. */
const programs = cachePath('docker-1');
/** Made by tools/test-setup.sh. */
const image = cachePath('base-1.tar');

/** What this machine lacks for `startDocker`, as a sentence; undefined if nothing is missing. */
export function dockerLacks(): string | undefined {
  // Of runc, iptables and root it needs what Podman does.
  return podmanLacks() ?? (existsSync(join(programs, 'dockerd')) ? undefined : `${programs} not found`);
}

/**
 * Starts Docker. It changes the firewall of the network in which it runs, so whoever calls this has one of its own: see
 * tools/own-network.sh. Its processes, containers among them, have a tree and mounts of their own, which end with this
 * process at the latest.
 *
 * @param options.registry `127.0.0.1:5000`: a registry that is asked without TLS.
 */
export async function startDocker({ registry }: { registry?: string } = {}): Promise<ContainerEngine> {
  const path = makeServerFolder();
  const inside = (name: string) => join(path, name);
  const socketPath = inside('docker.sock');
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH}` };
  const tree = startTree(path, env);
  const words = [
    ...['--data-root', inside('root'), '--exec-root', inside('exec'), '--pidfile', inside('pid')],
    ...['--containerd', inside('containerd.sock'), '--host', `unix://${socketPath}`],
    // Containers outlive the service, and none has the bridge that all share by default.
    ...['--live-restore', '--bridge=none', '--default-address-pool', 'base=10.63.0.0/16,size=24'],
    ...['--default-ulimit', 'nofile=4096:4096'],
    // systemd would take the ids of processes of this tree for those of the machine.
    ...['--exec-opt', 'native.cgroupdriver=cgroupfs'],
    ...(registry === undefined ? [] : ['--insecure-registry', registry]),
  ];
  const start = async (): Promise<Kill> => {
    rmSync(inside('pid'), { force: true });
    return startService(tree, words, { env, socketPath });
  };
  const docker = async (...given: string[]): Promise<string> =>
    (await run(join(programs, 'docker'), ['--host', `unix://${socketPath}`, ...given])).stdout;
  let kill = await start();
  await docker('import', image, podmanImage);
  return {
    socketPath,
    cli: docker,
    restart: async () => {
      await kill();
      kill = await start();
    },
    stop: async () => {
      const containers = (await docker('ps', '--all', '--quiet')).split('\n').filter((id) => id !== '');
      if (containers.length > 0) await docker('rm', '--force', '--volumes', ...containers);
      const ended = once(tree, 'exit');
      tree.kill('SIGKILL');
      await ended;
      removeServerFolder(path);
    },
  };
}

/**
 * What runs the containers, as the first process of a tree that ends with it. It sees neither settings nor sockets of a
 * Docker of the machine, and leaves none: of folders that were missing, empty ones.
 */
function startTree(path: string, env: NodeJS.ProcessEnv): ChildProcess {
  const hideOthers =
    'for folder in /etc/docker /etc/containerd /run/docker /run/containerd; do mkdir -p $folder && mount -t tmpfs tmpfs $folder || exit 1; done';
  const containerd = `${hideOthers}; exec containerd --root "$0/containerd" --state "$0/state" --address "$0/containerd.sock"`;
  const endsWithUs = '--pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc sh -c'.split(' ');
  return spawn('setpriv', [...endsWithUs, containerd, path], { env, stdio: 'ignore', detached: true });
}

/** Ends the service as a crash does. Containers continue. */
type Kill = () => Promise<void>;

async function startService(
  tree: ChildProcess,
  words: readonly string[],
  { env, socketPath }: { env: NodeJS.ProcessEnv; socketPath: string },
): Promise<Kill> {
  const [first] = await eventually(
    () => childrenOf(tree.pid ?? 0),
    ({ length }) => length > 0,
  );
  const flags = ['--target', String(first), '--mount', '--pid', 'dockerd', ...words];
  const child = spawn('nsenter', flags, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-4_000)));
  await eventually(
    async () => child.exitCode !== null || (await answers(socketPath)),
    (isDone) => isDone,
  );
  if (child.exitCode !== null) throw new Error(`Docker did not start: ${log}`);
  const [pid] = childrenOf(child.pid ?? 0);
  if (pid === undefined) throw new Error(`Docker ended again: ${log}`);
  return async () => {
    const ended = once(child, 'exit');
    signal(pid, 'SIGKILL');
    await ended;
  };
}

async function eventually<T>(look: () => T | Promise<T>, isEnough: (found: T) => boolean): Promise<T> {
  const untilMs = Date.now() + startTimeoutMs;
  for (;;) {
    const found = await look();
    if (isEnough(found)) return found;
    if (Date.now() > untilMs) throw new Error('Docker does not start.');
    await delay(20);
  }
}
