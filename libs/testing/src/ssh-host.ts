import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { withPatience } from '@atoll/waiting';
import { freePort } from './free-port.js';
import { baseTree } from './machine.js';
import { childrenOf, signal } from './process-tree.js';

/**
 * A Linux host with a real sshd on loopback, in namespaces of its own over a tree that it cannot change: no account of
 * this machine is touched.
 */
export interface SshHost {
  readonly port: number;
  /** `SHA256:…` of its ed25519 key. */
  readonly hostKey: string;
  /** Of root, and of the user `atoll` with password-less sudo. */
  readonly password: string;
  /** Runs a script inside as root, past sshd; its output. Throws where it fails. */
  inside(script: string): Promise<string>;
  /** Freezes the host: connections stay open and nothing answers. */
  pause(): void;
  resume(): void;
  /** As if the power were cut. */
  stop(): Promise<void>;
}

export interface SshHostOptions {
  /** Run inside as root before sshd starts, such as `rm /usr/sbin/chpasswd`. */
  readonly before?: string;
  /** Further arguments of sshd. */
  readonly sshd?: readonly string[];
  /** On this port; a free one unless given. */
  readonly port?: number;
}

const password = 'correct horse battery staple';

/** Everything above the tree lies in memory, and goes with the processes. */
function bootScript(folder: string, port: number, { before = '', sshd = [] }: SshHostOptions): string {
  const root = join(folder, 'root');
  return `set -e
mount --make-rprivate /
mount -t tmpfs -o size=200m tmpfs ${folder}
mkdir -p ${folder}/upper ${folder}/work ${root}
mount -t overlay overlay -o lowerdir=${baseTree},upperdir=${folder}/upper,workdir=${folder}/work ${root}
mount -t proc proc ${root}/proc
mount -t tmpfs tmpfs ${root}/run && mkdir -p ${root}/run/sshd
mount --rbind /dev ${root}/dev
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts ${root}/dev/pts
hostname gpu-host && echo '127.0.0.1 localhost gpu-host' > ${root}/etc/hosts
exec chroot ${root} /bin/bash -c '
set -e
# Without it PAM takes about 2 s to refuse a password.
sed -i "s/pam_unix.so nullok/& nodelay/" /etc/pam.d/common-auth
# A hash that is soon made: nobody attacks these passwords.
sed -i "s/yescrypt/sha512 rounds=1000/" /etc/pam.d/common-password
useradd --create-home --shell /bin/bash atoll
printf "root:${password}\\natoll:${password}\\n" | chpasswd
echo "atoll ALL=(ALL) NOPASSWD: ALL" > /etc/sudoers.d/atoll
rm -f /etc/ssh/ssh_host_*
ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key
${before.replaceAll("'", `'\\''`)}
# -r: it does not load itself anew for each connection.
exec /usr/sbin/sshd -r -D -e -p ${port} -o ListenAddress=127.0.0.1 -o PidFile=none -o PermitRootLogin=yes ${sshd.join(' ')}'`;
}

/** Needs what `hostsLack` looks for. Ends with this process at the latest. */
export async function startSshHost(options: SshHostOptions = {}): Promise<SshHost> {
  const port = options.port ?? (await freePort());
  const folder = await mkdtemp(join(tmpdir(), 'atoll-host-'));
  // `exit` does not come to a process that is killed.
  const endsWithUs = '--pdeathsig KILL unshare --mount --pid --fork --kill-child --uts --ipc bash -c'.split(' ');
  const flags = [...endsWithUs, bootScript(folder, port, options)];
  const child = spawn('setpriv', flags, { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-4_000)));
  const endWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithUs);
  const stop = async (): Promise<void> => {
    process.off('exit', endWithUs);
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null;
    child.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  if (!(await listens(port, child))) {
    await stop();
    throw new Error(`The host did not start: ${log}`);
  }
  const inside = (script: string): Promise<string> => runInside(child, join(folder, 'root'), script);
  const hostKey = (await inside('ssh-keygen -l -f /etc/ssh/ssh_host_ed25519_key.pub')).split(' ')[1] ?? '';
  const signalAll = (name: NodeJS.Signals) => () => {
    for (const pid of descendantsOf(child.pid ?? 0)) signal(pid, name);
  };
  return {
    port,
    hostKey,
    password,
    inside,
    pause: signalAll('SIGSTOP'),
    resume: signalAll('SIGCONT'),
    stop,
  };
}

function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

async function listens(port: number, child: ChildProcess): Promise<boolean> {
  while (child.exitCode === null && child.signalCode === null) {
    const socket = createConnection(port, '127.0.0.1');
    const greeting = await withPatience(once(socket, 'data'), 2_000, null).catch(() => null);
    socket.destroy();
    if (greeting) return true;
    await delay(10);
  }
  return false;
}

/** The first process of the host's own pid namespace is the child of `unshare`. */
async function runInside(child: ChildProcess, root: string, script: string): Promise<string> {
  const [first = ''] = (await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).trim().split(' ');
  const flags = [`--target=${first}`, '--mount', '--pid', '--uts', 'chroot', root, '/bin/bash', '-c', script];
  const entered = spawn('nsenter', flags, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  entered.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  entered.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const [code] = (await once(entered, 'close')) as [number];
  if (code !== 0) throw new Error(`On the host, with code ${code}: ${errors}`);
  return output.trim();
}
