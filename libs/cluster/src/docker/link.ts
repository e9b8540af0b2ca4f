import { Duplex } from 'node:stream';
import type { ReadableWritablePair } from 'node:stream/web';
import { generateKeyPair, type KeyPair } from '@atoll/ssh';
import ssh from 'ssh2';
import { ClusterError } from '../cluster-error.js';
import type { PodConnection } from '../shell.js';
import { archive, doorFolder } from './door-files.js';
import { framesOf, Outlet } from './multiplexed.js';

const linkUser = 'nobody';
/** A session of OpenSSH on its standard input and output: it listens nowhere. */
export const linkCommand = ['/usr/sbin/sshd', '-i', '-e', '-f', `${doorFolder}/sshd_config`];

const connectionsAtMost = 256;
const readyMs = 20_000;
const keepAlive = { keepaliveInterval: 15_000, keepaliveCountMax: 3 };
/** As quick as they come: the bytes travel inside of the engine's own connection. */
const algorithms = { cipher: 'aes128-gcm@openssh.com', kex: 'curve25519-sha256', key: 'ssh-ed25519' } as const;
const connectFailed = 2;

export interface LinkKeys {
  readonly host: KeyPair;
  readonly client: KeyPair;
}

/** For one link; they are never used again. */
export function createLinkKeys(): LinkKeys {
  return { host: generateKeyPair(), client: generateKeyPair() };
}

/** sshd_config(5): connections to the loopback of the pod, and nothing else that SSH can do. */
const configuration = `HostKey ${doorFolder}/host_key
AuthorizedKeysFile ${doorFolder}/client_key
StrictModes no
UsePAM no
PidFile none
AuthenticationMethods publickey
AllowUsers ${linkUser}
AllowTcpForwarding local
PermitOpen 127.0.0.1:* [::1]:*
AllowAgentForwarding no
AllowStreamLocalForwarding no
X11Forwarding no
PermitTTY no
PermitUserRC no
MaxSessions 0
ForceCommand /bin/false
Ciphers ${algorithms.cipher}
KexAlgorithms ${algorithms.kex}
Compression no
UseDNS no
LogLevel QUIET
`;

export function linkArchive({ host, client }: LinkKeys): Promise<Buffer> {
  return archive([
    { name: 'sshd_config', content: configuration },
    { name: 'host_key', content: `${host.privateKey}\n`, isSecret: true },
    { name: 'client_key', content: `${client.publicKey}\n` },
  ]);
}

/** Many connections into one pod, over the standard input and output of one helper container. */
export class Link {
  #connections = 0;
  isClosed = false;
  readonly #client = new ssh.Client();

  private constructor(
    private readonly socket: Duplex,
    private readonly onIdle: (isIdle: boolean) => void,
  ) {}

  /** `socket`: attached to the helper, with stdout and stderr together. */
  static async open(socket: Duplex, keys: LinkKeys, onIdle: (isIdle: boolean) => void): Promise<Link> {
    const link = new Link(socket, onIdle);
    await link.#handshake(keys);
    return link;
  }

  #handshake({ host, client }: LinkKeys): Promise<void> {
    const hostKey = publicKeyOf(host.publicKey);
    return new Promise((resolve, reject) => {
      const fail = (error?: Error): void => {
        this.close();
        reject(new ClusterError('unreachable', 'The helper for connections into the pod ended.', { cause: error }));
      };
      this.#client
        .once('ready', resolve)
        .on('error', fail)
        .on('close', () => fail());
      this.#client.connect({
        sock: plain(this.socket),
        username: linkUser,
        privateKey: client.privateKey,
        hostVerifier: (key: Buffer) => key.equals(hostKey),
        algorithms: {
          cipher: [algorithms.cipher],
          kex: [algorithms.kex],
          serverHostKey: [algorithms.key],
          compress: ['none'],
        },
        readyTimeout: readyMs,
        ...keepAlive,
      });
    });
  }

  /** IPv4 first, then IPv6, as `localhost` is tried inside. */
  async connect(port: number): Promise<PodConnection> {
    if (this.#connections >= connectionsAtMost) {
      throw new ClusterError('no_space', `The pod has ${connectionsAtMost} forwarded connections already.`);
    }
    this.#count(1);
    try {
      const channel = await this.#dial('127.0.0.1', port).catch(() => this.#dial('::1', port));
      channel.once('close', () => this.#count(-1));
      return channel;
    } catch (error) {
      this.#count(-1);
      throw error;
    }
  }

  #dial(host: string, port: number): Promise<ssh.ClientChannel> {
    return new Promise((resolve, reject) => {
      const answer = (error: (Error & { reason?: unknown }) | undefined, channel: ssh.ClientChannel): void => {
        if (!error) resolve(channel);
        else if (error.reason === connectFailed)
          reject(new ClusterError('refused', `Nothing listens on port ${port} in the pod.`, { cause: error }));
        else
          reject(new ClusterError('unreachable', 'The helper for connections into the pod ended.', { cause: error }));
      };
      try {
        this.#client.forwardOut('127.0.0.1', 0, host, port, answer);
      } catch (error) {
        reject(new ClusterError('unreachable', 'The helper for connections into the pod ended.', { cause: error }));
      }
    });
  }

  #count(change: 1 | -1): void {
    this.#connections += change;
    this.onIdle(this.#connections === 0);
  }

  close(): void {
    this.isClosed = true;
    this.#client.destroy();
    this.socket.destroy();
  }
}

/** A stream over an attached container: reads its stdout, writes its stdin. */
function plain(socket: Duplex): Duplex {
  const readable = new Outlet();
  void (async () => {
    for await (const { stream, data } of framesOf(socket)) if (stream === 'stdout') await readable.offer(data);
  })()
    .catch(() => undefined)
    .finally(() => readable.end());
  socket.on('error', () => undefined);
  // Its types name only the pairs of web streams, and Node takes both.
  const duplex = Duplex.from({ readable, writable: socket } as unknown as ReadableWritablePair);
  // What is open over it ends only when it is closed in both directions.
  return duplex.once('end', () => duplex.destroy());
}

function publicKeyOf(text: string): Buffer {
  const key = ssh.utils.parseKey(text);
  if (key instanceof Error) throw key;
  return key.getPublicSSH();
}
