import { pipeline } from 'node:stream';
import type { PodConnection } from '@atoll/cluster';
import { BadPublicKey, fingerprintOf, parsePublicKey } from '@atoll/ssh';
import { Logger } from '@nestjs/common';
import ssh2, {
  type AuthContext,
  type Connection,
  type PublicKeyAuthContext,
  type ServerChannel,
  type TcpipRequestInfo,
} from 'ssh2';
import { disconnect, disconnection, type DisconnectionCode } from './disconnection.js';
import type { Admission, AdmissionControl } from '../log-ins/admission-control.js';
import type { DoorLimits } from './door-limits.js';
import { PacedStream, type PacedSocket } from './paced-streams.js';
import { ShellSession } from './shell-session.js';
import { ChannelInput, narrowWindowsOf, type CountedClient, type UnreadInput } from './unread-input.js';

const methods = ['publickey'] as const;
const connectMs = 15_000;
/** What a client has to answer to the end before its connection is cut. */
const partingMs = 2_000;
/** OpenSSH shows nothing more of its sessions once it is told of the disconnection. They are closed before. */
const readingMs = 500;
/** What ssh2 says of a packet of more than 35,000 bytes. */
const tooLong = /^Bad packet length/;
const overrunSentence = 'More was sent on a channel than its window allows.';
const untakenReason = 'its pods did not take what the client sent';
const untakenSentence =
  'Your pods have not taken what you sent for a minute; the connection was closed. Send less at once.';
const tooLongSentence =
  'A packet, such as a command, may have 35000 bytes. Send a longer script by standard input: ssh ... sh -s < script';
/** Forwarding reaches the pod's own loopback and nothing behind it. */
const loopback: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1']);

export interface SshConnectionOptions {
  readonly admissionControl: AdmissionControl;
  readonly limits: DoorLimits;
  readonly socket: Pick<PacedSocket, 'destroy' | 'queueWrite' | 'readOn'>;
  readonly unread: UnreadInput;
  /** Why the holder may not come in beside other connections, a sentence for them; null where they may. */
  readonly refusalOf: (admission: Admission) => string | null;
}

/** What ssh2 1.17 has of a connection and does not show: the first message of a key exchange, until it ends. */
interface Inside {
  readonly _protocol?: { readonly _kexinit?: Buffer };
}

const isExchangingKeys = (client: Connection): boolean =>
  (client as unknown as Inside)._protocol?._kexinit !== undefined;

interface JoinParts {
  /** For what the pod writes. */
  readonly paced: PacedStream;
  readonly input: ChannelInput;
  readonly takeMs: number;
}

/** One connection of a client, from its log-in to its end. */
export class SshConnection implements CountedClient {
  readonly #logger = new Logger(SshConnection.name);
  /** By user name and key: a client asks for a key, then signs with it. */
  readonly #asked = new Map<string, Promise<Admission | null>>();
  readonly #sessions = new Set<ShellSession>();
  /** Of sessions and forwarded connections. */
  readonly #inputs = new Set<ChannelInput>();
  /** Pieces of output that wait for the end of a key exchange. */
  readonly #waiting: (() => void)[] = [];
  #admission: Admission | null = null;
  #failures = 0;
  /** Whether its holder has proven a key that opens the pod, or it could not be decided: no guess, then. */
  #isExcused = false;
  #forwards = 0;
  readonly #forwarded = new Set<PodConnection>();
  #isOver = false;
  #isOverrun = false;
  #hasLeft = false;
  #authenticating: Promise<void> = Promise.resolve();
  #reason = 'the client left';

  constructor(
    private readonly client: Connection,
    private readonly options: SshConnectionOptions,
  ) {
    narrowWindowsOf(client);
    client
      .on('authentication', (context) => {
        // In the order in which they came: their answers carry no number.
        this.#authenticating = this.#authenticating
          .then(() => this.#authenticate(context))
          .catch((error: unknown) => this.#break(error));
      })
      .on('session', (accept, reject) => {
        if (this.#isOver || this.#sessions.size >= options.limits.sessions) return reject();
        const session = accept();
        const queueWrite = (piece: () => void) => this.#queueWrite(piece);
        const inputOf = (channel: ServerChannel) => this.#inputOf(channel);
        const served = new ShellSession(session, { admission: this.#admission, queueWrite, inputOf });
        this.#sessions.add(served);
        session.once('close', () => {
          this.#sessions.delete(served);
          served.left();
        });
      })
      .on('close', () => this.#sessions.forEach((session) => session.left()))
      .on('tcpip', (accept, reject, asked) => void this.#forward(asked, accept, reject))
      .on('rekey', () => {
        for (const piece of this.#waiting.splice(0)) this.#queueWrite(piece);
      })
      // What clients send without a log-in, and connections that break: the client's affair.
      .on('error', (error) => this.#fail(error));
  }

  /** ssh2 ends its own side. The other may never do so: that of a client that is gone, or that does not care. */
  #fail(error: Error & { level?: string }): void {
    this.#logger.debug({ message: 'SSH client failed', err: error });
    if (error.level === 'client-timeout') {
      // Its answers are behind what pods do not take.
      if (this.options.unread.holds(this))
        return this.#disconnect(untakenReason, disconnection.byApplication, untakenSentence);
      this.#reason = 'the client did not answer';
      return this.cut();
    }
    // Once: what is left of the packet fails again, chunk by chunk.
    if (this.#admission && !this.#isOver && tooLong.test(error.message))
      disconnect(this.client, disconnection.protocolError, tooLongSentence);
    this.#isOver = true;
    setTimeout(() => this.cut(), partingMs).unref();
  }

  /**
   * Nobody is let in by a log-in that broke in the middle, and the next of this connection would be answered out of
   * order.
   */
  #break(error: unknown): void {
    this.#logger.warn({ message: 'An SSH log-in failed; its connection was closed', err: error });
    this.#isExcused = true;
    this.cut();
  }

  /**
   * Whether more is to be read of what the client sends; of one that sends more than a window allows, nothing more is.
   */
  takesInput(): boolean {
    if (!this.#admission) return true;
    if (this.#isOverrun) return false;
    this.#isOverrun = [...this.#inputs].some(({ isOverrun }) => isOverrun);
    if (!this.#isOverrun) return this.options.unread.takes(this);
    this.#disconnect('the client sent more than a channel allowed', disconnection.protocolError, overrunSentence);
    return false;
  }

  /** `reason`: for the audit trail. `sentence`: for the client. */
  #disconnect(reason: string, code: DisconnectionCode, sentence: string): void {
    this.#reason = reason;
    this.#isOver = true;
    disconnect(this.client, code, sentence);
    setTimeout(() => this.cut(), partingMs).unref();
  }

  get userId(): string {
    return this.#admission?.userId ?? '';
  }

  untakenBytes(): number {
    let bytes = 0;
    for (const input of this.#inputs) bytes += input.bytes;
    return bytes;
  }

  wideChannels(): number {
    let channels = 0;
    for (const input of this.#inputs) if (input.isWide) channels += 1;
    return channels;
  }

  readOn(): void {
    this.options.socket.readOn();
  }

  /** Its socket has closed. Forwarded connections may hold what it sent for longer, and count until then. */
  leave(): void {
    this.#hasLeft = true;
    if (this.#inputs.size === 0) this.options.unread.leave(this);
  }

  /** Counted until it ends. */
  #inputOf(channel: ServerChannel): ChannelInput {
    const { unread } = this.options;
    const input: ChannelInput = new ChannelInput(channel, {
      mayWiden: () => unread.mayWiden(this),
      ended: () => {
        this.#inputs.delete(input);
        if (this.#hasLeft) this.leave();
      },
    });
    this.#inputs.add(input);
    return input;
  }

  /** ssh2 keeps what is written during a key exchange, which the client need not end. */
  #queueWrite(piece: () => void): void {
    this.options.socket.queueWrite(() => (isExchangingKeys(this.client) ? this.#waiting.push(piece) : piece()));
  }

  /** null before the log-in. */
  get admission(): Admission | null {
    return this.#admission;
  }

  /** Whether its user has logged in. */
  isAdmitted(): this is SshConnection & { admission: Admission } {
    return this.#admission !== null;
  }

  /**
   * Whether it has tried keys, none of which opens the pod. An agent offers its keys one after the other, so only the
   * end tells.
   */
  get hasFailed(): boolean {
    return this.#failures > 0 && this.isUnproven;
  }

  /** Whether its holder has proven no key that opens the pod, and nothing kept the platform from deciding so. */
  get isUnproven(): boolean {
    return !this.#isExcused && !this.#admission;
  }

  /** Resolves when it is decided about what the client has tried so far; that may be after the client has left. */
  get decided(): Promise<void> {
    return this.#authenticating;
  }

  /** Why it ended, for the audit trail. */
  get reason(): string {
    return this.#reason;
  }

  async #authenticate(context: AuthContext): Promise<void> {
    if (this.#failures > this.options.limits.authTries) return;
    const admission = context.method === 'publickey' ? await this.#admit(context) : null;
    if (!admission || context.method !== 'publickey') return this.#refuse(context);
    if (!context.signature) return context.accept();
    if (!isSignedBy(context)) return this.#refuse(context);
    this.#isExcused = true;
    const refusal = this.options.refusalOf(admission);
    if (refusal) {
      this.#logger.warn({
        message: 'SSH log-in refused',
        reason: refusal,
        user_id: admission.userId,
        team_id: admission.teamId,
      });
      return disconnect(this.client, disconnection.tooManyConnections, refusal);
    }
    this.#admission = admission;
    context.accept();
  }

  #refuse(context: AuthContext): void {
    // Each client begins with `none`, to learn the methods.
    if (context.method !== 'none') this.#failures += 1;
    const { authTries } = this.options.limits;
    if (this.#failures <= authTries) return context.reject([...methods]);
    const sentence = `More keys were offered than the ${authTries} that a connection may try. Name the one that opens the pod: ssh -o IdentitiesOnly=yes -i <key>`;
    disconnect(this.client, disconnection.noMoreMethods, sentence);
  }

  async #admit({ username, key, hashAlgo }: PublicKeyAuthContext): Promise<Admission | null> {
    // RFC 8332: `ssh-rsa` without a hash is a signature with SHA-1.
    if (key.algo === 'ssh-rsa' && !hashAlgo) return null;
    const fingerprint = fingerprintOf(key.data);
    const asked = `${username}\0${fingerprint}`;
    const known = this.#asked.get(asked) ?? this.options.admissionControl.admit(username, fingerprint);
    this.#asked.set(asked, known);
    try {
      return await known;
    } catch (error) {
      this.#asked.delete(asked);
      this.#isExcused = true;
      this.#logger.warn({ message: 'Cannot check an SSH log-in; it was refused', err: error });
      return null;
    }
  }

  async #forward(
    { destIP, destPort }: TcpipRequestInfo,
    accept: () => ServerChannel,
    reject: () => void,
  ): Promise<void> {
    const run = this.#isOver ? null : this.#admission?.run;
    const { forwards, takeMs } = this.options.limits;
    if (!run || !loopback.has(destIP.toLowerCase()) || destPort < 1 || destPort > 65_535 || this.#forwards >= forwards)
      return reject();
    this.#forwards += 1;
    try {
      // Before the channel is accepted: otherwise a refused port looks like one that answers nothing.
      const connection = await run.driver.connect(run.ref, destPort, AbortSignal.timeout(connectMs));
      const channel = accept() as ServerChannel | undefined;
      if (!channel || this.#isOver) return void connection.destroy();
      this.#forwarded.add(connection);
      const input = this.#inputOf(channel);
      const paced = new PacedStream((piece) => this.#queueWrite(piece));
      await joined(channel, connection, { paced, input, takeMs });
      this.#forwarded.delete(connection);
      input.end();
    } catch {
      reject();
    } finally {
      this.#forwards -= 1;
    }
  }

  /** `reason` is told to whoever sits at a shell. */
  end(reason: string): void {
    this.#reason = reason;
    this.#isOver = true;
    const wordMs = this.#sessions.size > 0 ? readingMs : 0;
    for (const session of this.#sessions) session.end(reason);
    for (const connection of this.#forwarded) connection.destroy();
    setTimeout(() => this.client.end(), wordMs).unref();
    setTimeout(() => this.cut(), partingMs).unref();
  }

  /** Without a word, as a client that does not answer deserves. */
  cut(): void {
    this.options.socket.destroy();
  }
}

/** Also refuses types and sizes of keys that `parsePublicKey` does not take. */
function isSignedBy({ key, signature, blob, hashAlgo }: PublicKeyAuthContext): boolean {
  if (!signature || !blob) return false;
  try {
    const { line } = parsePublicKey(`${key.algo} ${key.data.toString('base64')}`);
    const parsed = ssh2.utils.parseKey(line);
    return !(parsed instanceof Error) && parsed.verify(blob, signature, hashAlgo) === true;
  } catch (error) {
    if (error instanceof BadPublicKey) return false;
    throw error;
  }
}

/**
 * Until both directions have ended, or the client has closed the channel or is gone, and the pod has taken no more of
 * what came before for `takeMs`. ssh2 emits neither `end` nor `close` of a stream of which something is unread, so the
 * rest is dropped then.
 */
function joined(channel: ServerChannel, connection: PodConnection, parts: JoinParts): Promise<void> {
  const { paced, input, takeMs } = parts;
  const { promise, resolve } = Promise.withResolvers<void>();
  const there = new Promise<void>((done) => pipeline(channel, input.sinkTo(connection), () => done()));
  // A channel that is closed ends this direction, and must not end the other.
  const answers = connection.iterator({ destroyOnReturn: false });
  const back = new Promise<void>((done) => pipeline(answers, paced, channel, () => done()));
  const drop = (): void => {
    connection.destroy();
    for (const each of [channel, connection]) each.resume();
    resolve();
  };
  let late: NodeJS.Timeout | undefined;
  let leftBytes: number | undefined;
  const closed = (): void => {
    if (input.bytes === leftBytes) return drop();
    leftBytes = input.bytes;
    late = setTimeout(closed, takeMs).unref();
  };
  // ssh2 ends this one at once when the channel is closed, since nothing is written to it.
  channel.stderr.once('finish', closed);
  channel.once('close', () => void there.then(drop));
  void Promise.all([there, back]).then(() => {
    channel.stderr.off('finish', closed);
    clearTimeout(late);
    resolve();
  });
  return promise;
}
