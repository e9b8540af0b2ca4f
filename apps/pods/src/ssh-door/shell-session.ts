import { pipeline, type Readable, type Writable } from 'node:stream';
import { ClusterError, commandOfLine, type Shell, type TerminalSize } from '@atoll/cluster';
import { Logger } from '@nestjs/common';
import type { ServerChannel, Session } from 'ssh2';
import type { Admission } from '../log-ins/admission-control.js';
import { PacedStream, type QueuePiece } from './paced-streams.js';
import { isAccepted, sftpCommand } from './session-command.js';
import { SessionOutput } from './session-output.js';
import { podEndBehind } from '../log-ins/shell-end.js';
import type { ChannelInput } from './unread-input.js';

const openMs = 30_000;
const lostCode = 255;

/** What a session shares with the others of its client. */
interface SessionParts {
  readonly admission: Pick<Admission, 'podName' | 'run'> | null;
  /** For pieces of output. */
  readonly queueWrite: QueuePiece;
  /** Counts the input of its channel. */
  readonly inputOf: (channel: ServerChannel) => ChannelInput;
}

/** One session of a client: a shell, a command or sftp, run in the pod by the driver. */
export class ShellSession {
  readonly #logger = new Logger(ShellSession.name);
  readonly #env = new Map<string, string>();
  #terminal: (TerminalSize & { type: string }) | null = null;
  #channel: ServerChannel | null = null;
  #output: SessionOutput | null = null;
  #shell: Shell | null = null;
  /** What the process writes, on its way. */
  #outputs: PacedStream[] = [];
  #isOver = false;
  readonly #left = new AbortController();

  constructor(
    session: Session,
    private readonly parts: SessionParts,
  ) {
    session
      .on('pty', (accept, reject, { cols, rows, term }) => {
        if (this.#channel) return this.#refuse(reject);
        // An empty type is what a client without a terminal of its own sends.
        this.#terminal = { ...sizeOf(cols, rows, usualSize), type: /^[\w.+-]{1,64}$/.test(term) ? term : 'dumb' };
        answer(accept);
      })
      .on('window-change', (accept, _reject, { cols, rows }) => {
        answer(accept);
        this.#resize(sizeOf(cols, rows, this.#terminal ?? usualSize));
      })
      .on('env', (accept, reject, { key, val }) => {
        if (this.#channel || !isAccepted(this.#env, key, val)) return this.#refuse(reject);
        this.#env.set(key, val);
        answer(accept);
      })
      .on('auth-agent', (_accept, reject) => this.#refuse(reject))
      .on('x11', (_accept, reject) => this.#refuse(reject))
      .on('signal', (accept, _reject, { name }) => {
        answer(accept);
        this.#shell?.signal(`SIG${name}`).catch(() => undefined);
      })
      .on('shell', (accept, reject) => this.#begin(accept, reject, null))
      .on('exec', (accept, reject, { command }) => this.#begin(accept, reject, commandOfLine(command)))
      .on('subsystem', (accept, reject, { name }) =>
        name === 'sftp' ? this.#begin(accept, reject, sftpCommand) : this.#refuse(reject),
      );
  }

  #resize(size: TerminalSize): void {
    if (!this.#terminal) return;
    this.#terminal = { ...this.#terminal, ...size };
    this.#shell?.resize(size).catch(() => undefined);
  }

  #refuse(reject: Reply | undefined): void {
    if (!reject) return;
    if (this.#channel) refuseBeside(this.#channel);
    else reject();
  }

  /** A session has one program (RFC 4254, 6.5): each further request is refused. */
  #begin(accept: () => ServerChannel, reject: Reply | undefined, command: readonly string[] | null): void {
    if (this.#channel) return this.#refuse(reject);
    const channel = (this.#channel = accept());
    const output = (this.#output = new SessionOutput(channel));
    const input = this.parts.inputOf(channel);
    channel.on('error', () => undefined);
    const served = this.#serve({ channel, output, input }, command).catch((error: unknown) => {
      if (!(error instanceof ClusterError)) this.#logger.warn({ message: 'SSH session failed', err: error });
      this.#end(error instanceof ClusterError ? error.message : 'The session failed.', lostCode);
    });
    void served.then(() => {
      // What the client still sends is dropped.
      channel.resume();
      input.end();
    });
  }

  async #serve(streams: Streams, command: readonly string[] | null): Promise<void> {
    const { admission } = this.parts;
    if (!admission?.run) return this.#end('The pod is not running. Start it, then log in again.', 1);
    const { driver, ref } = admission.run;
    const left = this.#left.signal;
    const [terminal, env] = [this.#terminal, this.#env];
    const signal = AbortSignal.any([left, AbortSignal.timeout(openMs)]);
    const shell = await driver.openShell(ref, { command, terminal, env }, signal);
    this.#shell = shell;
    if (left.aborted) return this.#close(shell);
    left.addEventListener('abort', () => this.#close(shell));
    // A window that changed while the shell was opened.
    if (this.#terminal && this.#terminal !== terminal) this.#resize(this.#terminal);
    const code = await this.#passBytes(streams, shell);
    const podEnd = await podEndBehind(code, admission);
    if (podEnd) return this.#end(podEnd, code ?? lostCode);
    if (code === null) return this.#end('The connection to the pod was lost.', lostCode);
    if (!this.#isOver && !left.aborted) await streams.output.end(code);
  }

  /**
   * Until the process has ended and all that it wrote has been passed on; its exit code, null where nobody can tell.
   */
  async #passBytes({ channel, output, input }: Streams, shell: Shell): Promise<number | null> {
    shell.stdin.on('error', () => undefined);
    channel.pipe(input.sinkTo(shell.stdin)).on('error', () => undefined);
    const passed = [
      this.#pass(shell.stdout, output.sink(channel)),
      this.#pass(shell.stderr, output.sink(channel.stderr)),
    ];
    const { code } = await shell.exit;
    await Promise.all(passed);
    return code;
  }

  /** Resolves when the client has been sent all of the output, or at what ends it before. */
  #pass(output: Readable, sink: Writable): Promise<void> {
    const paced = new PacedStream(this.parts.queueWrite);
    this.#outputs.push(paced);
    return new Promise((resolve) => pipeline(output, paced, sink, () => resolve()));
  }

  /**
   * Ends the process, with a sentence to the user. The process gets no more input, and nothing that it still writes is
   * passed on.
   */
  end(sentence: string): void {
    this.#channel?.unpipe();
    for (const output of this.#outputs) output.destroy();
    this.#end(sentence, lostCode);
    if (this.#shell) this.#close(this.#shell);
  }

  /**
   * The client has closed the channel, or is gone: ends the process. The channel's own `close` does not tell, as ssh2
   * emits it only when all input has been read, and a process may never do that.
   */
  left(): void {
    this.#left.abort();
    for (const output of this.#outputs) output.destroy();
  }

  #close(shell: Shell): void {
    shell
      .close()
      .catch((error: unknown) => this.#logger.warn({ message: 'Cannot end a process of an SSH session', err: error }));
  }

  /** The sentence goes where the client shows it, and not into the output of a command, which may be data. */
  #end(sentence: string, code: number): void {
    const [channel, output] = [this.#channel, this.#output];
    if (!channel || !output || this.#isOver || this.#left.signal.aborted) return;
    this.#isOver = true;
    const last = this.#terminal
      ? { target: channel, text: `\r\n${sentence}\r\n` }
      : { target: channel.stderr, text: `${sentence}\n` };
    void output.end(code, last);
  }
}

/** Of the channel of a session. */
interface Streams {
  readonly channel: ServerChannel;
  readonly output: SessionOutput;
  readonly input: ChannelInput;
}

type Reply = () => unknown;

/** A request without a wish for an answer has nothing to call. */
const answer = (reply: Reply | undefined): void => void reply?.();

/** What ssh2 1.17 has of a channel and does not show: once a program runs, its own `reject` sends nothing. */
interface Inside {
  readonly outgoing: { readonly id: number; readonly state: string };
  readonly _client: { readonly _protocol: { channelFailure(id: number): void } };
}

function refuseBeside(channel: ServerChannel): void {
  const { outgoing, _client: client } = channel as unknown as Inside;
  if (outgoing.state === 'open') client._protocol.channelFailure(outgoing.id);
}

const usualSize: TerminalSize = { columns: 80, rows: 24 };

/** A length of 0 says nothing (RFC 4254, 6.2): a client without a terminal of its own sends it. */
const sizeOf = (columns: number, rows: number, known: TerminalSize): TerminalSize => ({
  columns: Math.min(columns, 10_000) || known.columns,
  rows: Math.min(rows, 10_000) || known.rows,
});
