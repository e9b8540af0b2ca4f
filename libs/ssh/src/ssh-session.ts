import ssh2, { type ClientChannel, type ConnectConfig, type ParsedKey, type PublicKeyAuthMethod } from 'ssh2';
import { algorithms } from './algorithms.js';
import { connecting, dial, raced, type DialOptions } from './dial.js';
import { openPrivateKey } from './private-key.js';
import { fingerprintOf } from './public-key.js';
import { sshError, toSshError } from './ssh-error.js';

export type SshCredential =
  | { readonly password: string }
  | { readonly privateKey: string; readonly passphrase?: string };

export interface SshTarget {
  /** Name or address. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly credential: SshCredential;
  /** `SHA256:…`; null accepts any key of the host, and returns it as `hostKey`. */
  readonly hostKey: string | null;
}

export interface SshCommand {
  /** What the host's shell is given. It shows in `ps`: nothing secret, ever; that goes through `input`. */
  readonly command: string;
  /** Written to standard input, which is then closed. */
  readonly input?: string;
  /** Of standard output and of standard error each. 256 KiB unless given. */
  readonly maxOutputBytes?: number;
}

export interface SshResult {
  /** Exit code; null if the host sent none, for example because the command was killed. */
  readonly code: number | null;
  /** `SIGKILL`; null where it ended by itself. */
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

const defaultMaxOutputBytes = 256 * 1024;
/**
 * What a host may send in one connection: the output of a command with all that surrounds it. A host whose tenant was
 * root can send anything without end, and each request among it gets a reply that waits in memory until the host takes
 * it.
 */
const maxReceivedBytes = 1024 * 1024;
/** A host that is frozen, or has vanished, is noticed after these. */
const keepAlive = { keepaliveInterval: 5_000, keepaliveCountMax: 3 };

/**
 * One connection to a host. ssh2 knows no deadline for a command: here each call ends with its signal, and a session
 * whose command did not end in time is of no use any more.
 */
export class SshSession {
  private constructor(
    private readonly client: ssh2.Client,
    /** `SHA256:…` of the host key that the host has shown. */
    readonly hostKey: string,
    private readonly lost: Promise<never>,
  ) {}

  /** Connects and logs in. Throws `SshError`, always before the signal's time is over by much. */
  static async open(target: SshTarget, options: DialOptions, signal: AbortSignal): Promise<SshSession> {
    const socket = await dial(target.host, target.port, options, signal);
    const client = new ssh2.Client();
    let greeting = '';
    socket.once('data', (chunk: Buffer) => (greeting = chunk.toString('latin1')));
    socket.on('data', () => {
      if (socket.bytesRead > maxReceivedBytes) socket.destroy(sshError('output_too_large'));
    });
    let shown = '';
    const failed = (error: Error): Error => {
      if (shown && target.hostKey && shown !== target.hostKey) return sshError('host_key_changed', error);
      return isCutOff(error, greeting) ? sshError('cut', error) : toSshError(error);
    };
    const ready = new Promise<void>((resolve, reject) => {
      client.on('ready', resolve);
      client.on('error', (error: Error) => reject(failed(error)));
      client.on('close', () => reject(sshError('cut')));
    });
    const hostVerifier = (key: Buffer): boolean => {
      shown = fingerprintOf(key);
      return target.hostKey === null || shown === target.hostKey;
    };
    client.on('keyboard-interactive', (_name, _instructions, _language, prompts, finish) =>
      finish(prompts.map(() => ('password' in target.credential ? target.credential.password : ''))),
    );
    try {
      const greeted = new Promise<unknown>((resolve) => client.once('handshake', resolve));
      client.connect({ ...configOf(target), sock: socket, hostVerifier });
      await connecting(Promise.race([greeted, ready]), options, signal);
      await raced(ready, signal);
    } catch (error) {
      client.destroy();
      socket.destroy();
      throw toSshError(error);
    }
    return new SshSession(client, shown, lossOf(client));
  }

  /** Runs one command in a session of its own, without a terminal. A code other than 0 is no error of this call. */
  async run(
    { command, input = '', maxOutputBytes = defaultMaxOutputBytes }: SshCommand,
    signal: AbortSignal,
  ): Promise<SshResult> {
    try {
      return await raced(Promise.race([this.#exec(command, input, maxOutputBytes), this.lost]), signal);
    } catch (error) {
      const failure = toSshError(error);
      // What still runs there ends with its channel or not; nobody waits for it.
      if (failure.kind === 'timeout' || failure.kind === 'output_too_large') this.close();
      throw failure;
    }
  }

  /** Ends the connection at once, whatever the host does. */
  close(): void {
    this.client.end();
    this.client.destroy();
  }

  /** Listens before anything else happens: a quick command may have ended in the packet that says that it has begun. */
  #exec(command: string, input: string, maxOutputBytes: number): Promise<SshResult> {
    return new Promise((resolve, reject) => {
      this.client.exec(command, (error, channel) => {
        if (error) reject(error);
        else collect(channel, input, maxOutputBytes).then(resolve, reject);
      });
    });
  }
}

/** Hung up at the door by an SSH server, which may say why: MaxStartups of OpenSSH. */
function isCutOff({ message }: Error, greeting: string): boolean {
  return (
    /^Connection lost before handshake/.test(message) && /^($|SSH-|Exceeded MaxStartups|Not allowed)/.test(greeting)
  );
}

function byKey(username: string, key: ParsedKey): PublicKeyAuthMethod {
  return { type: 'publickey', username, key };
}

function configOf({ user, credential }: SshTarget): ConnectConfig {
  return {
    username: user,
    ...('password' in credential
      ? { password: credential.password, tryKeyboard: true }
      : { authHandler: [byKey(user, openPrivateKey(credential.privateKey, credential.passphrase))] }),
    algorithms,
    // The signal is the deadline.
    readyTimeout: 0,
    ...keepAlive,
  };
}

function lossOf(client: ssh2.Client): Promise<never> {
  const lost = new Promise<never>((_, reject) => {
    client.on('error', (error: Error) => reject(toSshError(error)));
    client.on('close', () => reject(sshError('cut')));
  });
  // It is lost in the end, whether somebody waits or not.
  lost.catch(() => undefined);
  return lost;
}

function collect(channel: ClientChannel, input: string, maxOutputBytes: number): Promise<SshResult> {
  return new Promise((resolve, reject) => {
    const taken = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    const bytes = { stdout: 0, stderr: 0 };
    let end: { code: number | null; signal: string | null } = { code: null, signal: null };
    const take = (name: 'stdout' | 'stderr') => (chunk: Buffer) => {
      bytes[name] += chunk.length;
      if (bytes[name] > maxOutputBytes) return reject(sshError('output_too_large'));
      taken[name].push(chunk);
    };
    channel.on('data', take('stdout'));
    channel.stderr.on('data', take('stderr'));
    channel.on('error', reject);
    channel.on('exit', (code: number | null, signal?: string) => {
      end = { code, signal: signal ? `SIG${signal.replace(/^SIG/, '')}` : null };
    });
    channel.on('close', () =>
      resolve({
        ...end,
        stdout: Buffer.concat(taken.stdout).toString('utf8'),
        stderr: Buffer.concat(taken.stderr).toString('utf8'),
      }),
    );
    channel.end(input);
  });
}
