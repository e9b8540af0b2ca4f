import { PassThrough } from 'node:stream';
import { ClusterError, type Shell, type TerminalSize } from '@atoll/cluster';
import { terminalSizeLimit } from '@atoll/contracts/pods';
import { Logger } from '@nestjs/common';
import type { RawData, WebSocket } from 'ws';
import type { Admission } from '../log-ins/admission-control.js';
import type { AuthenticatedConnection } from '../log-ins/connection-registry.js';
import { podEndBehind } from '../log-ins/shell-end.js';
import type { TerminalRequest } from './terminal-tickets.js';

const openMs = 30_000;
/** What a browser has to answer to the end before its connection is cut. */
const partingMs = 2_000;
/** Between two pings; a peer that has not answered the last one is gone. */
const pingMs = 25_000;
const terminalType = 'xterm-256color';
const env: ReadonlyMap<string, string> = new Map([['COLORTERM', 'truecolor']]);

/** Codes of the closing handshake (RFC 6455, 7.4.1). */
const closing = { ended: 1000, unsupported: 1003, notAllowed: 1008, lost: 1011, restart: 1012 } as const;
const reasonBytes = 123;

const notAdmitted = 'You may no longer open a terminal here: the team is suspended, or your role in it has changed.';

/**
 * One terminal in a browser: a shell in the pod, joined to a WebSocket. Bytes are input and output; a text frame
 * resizes.
 */
export class TerminalConnection implements AuthenticatedConnection {
  readonly #logger = new Logger(TerminalConnection.name);
  readonly admission: Admission;
  #reason = 'the client left';
  #size: TerminalSize;
  #shell: Shell | null = null;
  #isAlive = true;
  /** What was typed; also before the shell is there to read it. */
  readonly #typed = new PassThrough();

  constructor(
    private readonly socket: WebSocket,
    { admission, size }: TerminalRequest,
    private readonly isStillAdmitted: (admission: Admission) => Promise<boolean>,
  ) {
    this.admission = admission;
    this.#size = size;
    socket.on('message', (data, isBinary) => (isBinary ? this.#input(data) : this.#command(data)));
    socket.on('pong', () => (this.#isAlive = true));
    // What a client sends that is no WebSocket, and connections that break: its own affair.
    socket.on('error', (error) => this.#logger.debug({ message: 'WebSocket of a terminal failed', err: error }));
  }

  get reason(): string {
    return this.#reason;
  }

  /** Resolves when the connection is closed. Ends the shell in any case. */
  async serve(): Promise<void> {
    const left = new AbortController();
    const closed = new Promise<void>((resolve) => this.socket.once('close', () => resolve()));
    void closed.then(() => {
      left.abort();
      this.#typed.destroy();
      this.#shell?.stdout.destroy();
    });
    const pings = setInterval(() => this.#ping(), pingMs);
    await this.#pass(left.signal).catch((error: unknown) => this.#fail(error));
    await closed;
    clearInterval(pings);
    await this.#shell
      ?.close()
      .catch((error: unknown) => this.#logger.warn({ message: 'Cannot end a process of a terminal', err: error }));
  }

  async #pass(left: AbortSignal): Promise<void> {
    const { run } = this.admission;
    if (!run) return this.#close(closing.ended, 'The pod is not running. Start it, then open the terminal again.');
    if (!(await this.isStillAdmitted(this.admission))) return this.#close(closing.notAllowed, notAdmitted);
    const size = this.#size;
    const terminal = { ...size, type: terminalType };
    const signal = AbortSignal.any([left, AbortSignal.timeout(openMs)]);
    const shell = (this.#shell = await run.driver.openShell(run.ref, { command: null, terminal, env }, signal));
    shell.stdin.on('error', () => undefined);
    if (left.aborted) return;
    this.#typed.pipe(shell.stdin);
    // A window that changed while the shell was opened.
    if (this.#size !== size) await shell.resize(this.#size).catch(() => undefined);
    // The next chunk is read when this one has left: a browser that does not read holds up its own shell and nothing
    // else.
    for await (const chunk of shell.stdout) await this.#send(chunk as Buffer);
    const { code } = await shell.exit;
    const podEnd = await podEndBehind(code, this.admission);
    if (podEnd) this.#close(closing.ended, podEnd);
    else if (code === null) this.#close(closing.lost, 'The connection to the pod was lost.');
    else this.#close(closing.ended, `The shell ended with code ${code}.`);
  }

  #fail(error: unknown): void {
    // Its output was cut off by the end of the connection.
    if (this.#isOver) return;
    if (!(error instanceof ClusterError)) this.#logger.warn({ message: 'A terminal failed', err: error });
    this.#close(closing.lost, error instanceof ClusterError ? error.message : 'The terminal failed.');
  }

  get #isOver(): boolean {
    return this.socket.readyState > this.socket.OPEN;
  }

  #send(chunk: Buffer): Promise<void> {
    return new Promise((resolve) => this.socket.send(chunk, { binary: true }, () => resolve()));
  }

  #input(data: RawData): void {
    // An empty chunk takes none of the room, so that any number of them would wait for a shell that does not read.
    if (this.#isOver || (data as Buffer).length === 0 || this.#typed.write(data) || this.socket.isPaused) return;
    this.socket.pause();
    this.#typed.once('drain', () => this.socket.resume());
  }

  #command(data: RawData): void {
    const size = sizeIn((data as Buffer).toString());
    if (!size)
      return this.#close(
        closing.unsupported,
        'A text frame must be {"columns": n, "rows": n}, whole numbers from 1 to 1000.',
      );
    this.#size = size;
    this.#shell?.resize(size).catch(() => undefined);
  }

  #ping(): void {
    if (!this.#isAlive) return this.socket.terminate();
    this.#isAlive = false;
    // A peer whose data waits to be sent cannot have answered.
    if (this.socket.bufferedAmount > 0) this.#isAlive = true;
    else this.socket.ping();
  }

  end(reason: string): void {
    this.#close(closing.notAllowed, reason);
  }

  /** This replica stops. */
  restart(): void {
    this.#close(closing.restart, 'The platform restarts here. Open the terminal again.');
  }

  #close(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#reason = reason;
    this.socket.close(
      code,
      Buffer.from(reason)
        .subarray(0, reasonBytes)
        .toString()
        .replace(/\uFFFD$/, ''),
    );
    setTimeout(() => this.socket.terminate(), partingMs).unref();
  }
}

function sizeIn(text: string): TerminalSize | null {
  try {
    const { columns, rows } = JSON.parse(text) as Partial<TerminalSize>;
    return isLength(columns) && isLength(rows) ? { columns, rows } : null;
  } catch {
    return null;
  }
}

function isLength(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= terminalSizeLimit;
}
