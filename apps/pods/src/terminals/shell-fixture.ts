import { PassThrough, Readable } from 'node:stream';
import type { ClusterDriver, Shell, ShellExit, ShellRequest, TerminalSize } from '@atoll/cluster';

/**
 * A shell that answers what it reads, says how large its terminal is, and ends after `exit n`. `flood`: it writes
 * without an end.
 */
export class ShellUnderTest implements Shell {
  readonly stdin = new PassThrough();
  readonly stdout = new Readable({ read: () => this.#flood() });
  readonly stderr = Readable.from([]);
  readonly exit: Promise<ShellExit>;
  readonly sizes: TerminalSize[] = [];
  /** Bytes of the flood that were taken from it. */
  written = 0;
  isClosed = false;
  #isFlooding = false;
  #exit: (exit: ShellExit) => void = () => undefined;

  constructor(readonly request: ShellRequest) {
    this.exit = new Promise((resolve) => (this.#exit = resolve));
    if (request.terminal) this.sizes.push(request.terminal);
    this.stdin.on('data', (data: Buffer) => {
      const [, code] = /^exit (\d+)/.exec(data.toString()) ?? [];
      if (code !== undefined) return this.finish(Number(code));
      if (data.toString() !== 'flood') return void this.stdout.push(`> ${data.toString()}`);
      this.#isFlooding = true;
      this.#flood();
    });
  }

  #flood(): void {
    if (!this.#isFlooding || this.isClosed) return;
    const chunk = Buffer.alloc(64 * 1024, 'y');
    this.written += chunk.length;
    setImmediate(() => this.stdout.push(chunk));
  }

  finish(code: number | null): void {
    this.stdout.push(null);
    this.#exit({ code });
  }

  resize(size: TerminalSize): Promise<void> {
    this.sizes.push(size);
    return Promise.resolve();
  }

  signal(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.isClosed = true;
    this.stdout.destroy();
    return Promise.resolve();
  }
}

/** Lets a driver open shells under test; returns those that it has opened. */
export function openShellsUnderTest(driver: ClusterDriver): ShellUnderTest[] {
  const opened: ShellUnderTest[] = [];
  driver.openShell = (_ref, request) => {
    const shell = new ShellUnderTest(request);
    opened.push(shell);
    return Promise.resolve(shell);
  };
  return opened;
}
