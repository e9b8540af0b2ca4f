import { Writable, type Duplex, type Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { untilAborted } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import type { Shell, ShellExit, TerminalSize } from '../shell.js';
import { LatestSize, PendingSignals } from './exec-gestures.js';
import { framesOf, Outlet, type Frame } from './multiplexed.js';
import { OutputEnd } from './output-end.js';

/** Requests that the shell sends to the engine in addition to its stream. */
export interface ExecCalls {
  /** null while it runs. */
  exit(): Promise<ShellExit | null>;
  resize(size: TerminalSize): Promise<void>;
  signal(name: string, session: string): Promise<void>;
  end(session: string): Promise<void>;
}

/** Between the end of the stream and the exit code. */
const exitLookMs = [0, 20, 50, 100, 200, 400, 800, 1_600];
const endMs = 10_000;
const longestFirstLine = 20;
/** Shells count so: what is above is an end by a signal (128 + n), which is no success. */
const highestOwnCode = 128;

/**
 * One exec of a container engine: its stream carries all of stdin, stdout and stderr. On Podman the shell of the
 * session marks the end of the output (`sessionExec`), and gets no more input from there on.
 */
export class ExecShell implements Shell {
  readonly stdin: Writable;
  readonly exit: Promise<ShellExit>;
  readonly #stdout = new Outlet();
  readonly #stderr = new Outlet();
  /** Of the only stream, or of stderr. */
  readonly #end: OutputEnd | null;
  readonly #begun = Promise.withResolvers<string>();
  #firstLine = '';
  #session: string | null = null;
  #isOver = false;
  readonly #size = new LatestSize((size) => this.#resize(size));
  readonly #signals = new PendingSignals((signal) => this.#send(signal));

  constructor(
    private readonly socket: Duplex,
    private readonly isTerminal: boolean,
    private readonly calls: ExecCalls,
    mark: string | null,
  ) {
    this.#end = mark === null ? null : new OutputEnd(mark);
    // Its end is seen by the pump.
    socket.on('error', () => undefined);
    this.#begun.promise.catch(() => undefined);
    this.stdin = stdinOf(socket);
    this.exit = this.#pump();
  }

  get stdout(): Readable {
    return this.#stdout;
  }

  get stderr(): Readable {
    return this.#stderr;
  }

  /**
   * Resolves when the command runs. Throws where it could not begin, and leaves nothing behind when the signal is
   * aborted.
   */
  async begin(signal: AbortSignal): Promise<void> {
    try {
      await untilAborted(signal, this.#begun.promise);
    } catch (error) {
      // Nobody is left to hear of an end that the engine refuses: the pod may have ended meanwhile.
      void this.#begun.promise.then(() => this.close()).catch(() => this.disconnect());
      throw error;
    }
  }

  async #pump(): Promise<ShellExit> {
    try {
      for await (const frame of this.#frames()) await this.#deliver(frame);
      const rest = this.#end?.end();
      if (rest?.length) await this.#marked.offer(rest);
    } catch {
      // The connection broke: the exit says that nobody knows.
    }
    this.#stdout.end();
    this.#stderr.end();
    this.stdin.destroy();
    const exit = this.#known(await this.#exit());
    this.#isOver = true;
    this.#begun.reject(beginErrorOf(exit));
    return exit;
  }

  #frames(): AsyncIterable<Frame> {
    if (!this.isTerminal) return framesOf(this.socket);
    this.#stderr.end();
    return raw(this.socket);
  }

  async #deliver({ stream, data }: Frame): Promise<void> {
    const outlet = stream === 'stdout' ? this.#stdout : this.#stderr;
    let rest = data;
    if (outlet === this.#marked) {
      if (this.#session === null) rest = this.#readSession(rest);
      if (this.#end) rest = this.#readEnd(this.#end, rest);
    }
    if (rest.length > 0) await outlet.offer(rest);
  }

  /** The stream that the session begins and ends with. */
  get #marked(): Outlet {
    return this.isTerminal ? this.#stdout : this.#stderr;
  }

  #readEnd(end: OutputEnd, data: Buffer): Buffer {
    if (end.isMarked) return end.push(data);
    const output = end.push(data);
    if (end.isMarked) {
      this.stdin.destroy();
      if (!this.isTerminal) this.socket.end();
    }
    return output;
  }

  /**
   * The code of a command of which Podman may have dropped output is not known, so that nobody takes what there is for
   * all. On a terminal, Podman writes its error also where nothing was lost; there the mark proves that all output
   * came. On pipes, the error appears only where the session's shell was killed or could not read the input to its end.
   */
  #known(exit: ShellExit): ShellExit {
    const isWhole = !this.#end?.isCut || (this.isTerminal && this.#end.isMarked);
    return isWhole || (exit.code ?? 0) > highestOwnCode ? exit : { code: null };
  }

  /** The first line is for us; returns what follows it. */
  #readSession(data: Buffer): Buffer {
    const end = data.indexOf('\n');
    this.#firstLine += data.subarray(0, end < 0 ? undefined : end).toString('latin1');
    if (end < 0 && this.#firstLine.length <= longestFirstLine) return Buffer.alloc(0);
    const session = this.#firstLine.trim();
    if (!/^\d+$/.test(session)) return data;
    this.#session = session;
    this.#begun.resolve(session);
    return data.subarray(end + 1);
  }

  async #exit(): Promise<ShellExit> {
    for (const waitMs of exitLookMs) {
      await delay(waitMs);
      const exit = await this.calls.exit().catch(() => undefined);
      if (exit === undefined) break;
      if (exit) return exit;
    }
    return { code: null };
  }

  async resize(size: TerminalSize): Promise<void> {
    if (this.isTerminal) await this.#size.set(size);
  }

  async #resize(size: TerminalSize): Promise<void> {
    if (this.#isOver) return;
    try {
      await this.calls.resize(size);
    } catch (error) {
      // It may have ended between the two.
      if (!this.#isOver && (await this.calls.exit()) === null) throw error;
    }
  }

  async signal(name: string): Promise<void> {
    const [, signal] = /^SIG([A-Z]{2,6}\d?)$/.exec(name) ?? [];
    if (!signal) throw new ClusterError('invalid', 'A signal must be a name such as SIGINT or SIGUSR1.');
    await this.#signals.add(signal);
  }

  async #send(signal: string): Promise<void> {
    if (this.#session !== null && !this.#isOver) await this.calls.signal(signal, this.#session);
  }

  async close(): Promise<void> {
    this.#stdout.destroy();
    this.#stderr.destroy();
    if (this.#isOver) return;
    if (this.#session === null) return this.disconnect();
    await this.calls.end(this.#session);
    // The stream ends with the process, but for one that the engine has lost.
    const timer = setTimeout(() => this.disconnect(), endMs);
    void this.exit.finally(() => clearTimeout(timer));
  }

  disconnect(): void {
    this.socket.destroy();
  }
}

/** 126 and 127 are what a runtime answers for a command that it cannot run. */
function beginErrorOf({ code }: ShellExit): ClusterError {
  if (code === 126 || code === 127)
    return new ClusterError('invalid', 'The image of the pod has no shell (sh) to begin a session with.');
  return code === null
    ? new ClusterError('unreachable', 'The connection to the container engine broke.')
    : new ClusterError('not_found', 'The pod ended.');
}

async function* raw(socket: Duplex): AsyncGenerator<Frame> {
  for await (const data of socket as AsyncIterable<Buffer>) yield { stream: 'stdout', data };
}

/** Closing it closes the process's input alone. */
function stdinOf(socket: Duplex): Writable {
  return new Writable({
    // A connection that breaks ends the pump, which destroys this stream.
    write: (chunk: Buffer, _encoding, done) => void socket.write(chunk, (error) => !error && done()),
    final: (done) => void socket.end(() => done()),
  });
}
