import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ClusterError } from '../../cluster-error.js';
import { Outlet } from '../../docker/multiplexed.js';
import { lineOf, type Shell, type ShellExit, type ShellRequest, type TerminalSize } from '../../shell.js';
import { expand, parseLine } from './command-line.js';
import { programs } from './programs.js';
import { PipedInput, TypedInput, type ShellInput } from './shell-input.js';
import type { ShownPod } from './simulated-process.js';

/** 128 + n, as shells count. */
const codes: Readonly<Record<string, number>> = { HUP: 129, INT: 130, QUIT: 131, KILL: 137, TERM: 143 };
/** Characters of a command with its variables replaced, of which a line may name many. */
const mostOfCommand = 131_072;
const greeting =
  'This pod is simulated: no container exists, and no GPU is used. Enter help for what its shell knows.\n';
const unknown = /^(?:if|for|while|until|case|function|exec|set|trap|export|\[)$/;

interface Outcome {
  readonly code: number;
  readonly isExit: boolean;
}

/** A shell in a simulated pod, with programs of its own: nothing is run on the machine, and no file of it is read. */
export class SimulatedShell implements Shell {
  readonly stdin = new PassThrough();
  readonly stdout = new Outlet();
  readonly stderr = new Outlet();
  readonly exit: Promise<ShellExit>;
  readonly #ended = Promise.withResolvers<number | null>();
  readonly #over = new AbortController();
  readonly #env: Map<string, string>;
  readonly #input: ShellInput;
  #running = new AbortController();
  #writing: Promise<void> = Promise.resolve();
  #lastCode = 0;

  constructor(
    private readonly pod: ShownPod,
    private readonly request: ShellRequest,
  ) {
    const { command, env, terminal } = request;
    this.#env = environmentOf(pod, env);
    if (terminal) {
      this.#env.set('TERM', terminal.type);
      void this.resize(terminal);
      this.stderr.end();
      this.#input = new TypedInput(
        this.stdin,
        (text) => this.#write(this.stdout, text),
        () => this.#interrupt(),
      );
    } else this.#input = new PipedInput(this.stdin);
    this.stdin.on('error', () => undefined);
    this.exit = this.#serve(command);
  }

  /** Aborted when it is over. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  async #serve(command: readonly string[] | null): Promise<ShellExit> {
    const work = (command ? this.#execute(command) : this.#converse()).catch(() => null);
    const code = await Promise.race([work, this.#ended.promise]);
    this.#over.abort();
    this.#running.abort();
    this.stdout.end();
    if (!this.request.terminal) this.stderr.end();
    this.stdin.destroy();
    return { code };
  }

  async #converse(): Promise<number> {
    if (this.request.terminal) await this.#print(greeting);
    for (;;) {
      if (this.request.terminal) await this.#print(`root@${this.pod.podName}:${this.#env.get('PWD')}# `);
      this.#running = new AbortController();
      const { signal } = this.#running;
      const line = await this.#input.next(signal);
      if (line === null && signal.aborted) continue;
      if (line === null) return this.#lastCode;
      const { code, isExit } = await this.#runLine(line);
      if (isExit) return code;
    }
  }

  async #execute(command: readonly string[]): Promise<number> {
    const [name = '', option, script = ''] = command;
    const isShell = name === 'sh' || name === 'bash';
    if (isShell && option !== '-c') return this.#converse();
    if (!isShell) return (await this.#runWords(command)).code;
    for (const line of (lineOf(command) ?? script).split('\n')) {
      const { isExit } = await this.#runLine(line);
      if (isExit) break;
    }
    return this.#lastCode;
  }

  /**
   * A line that this shell cannot read ends a script, and not a session. Other work of the process has a turn before
   * each line and command.
   */
  async #runLine(line: string): Promise<Outcome> {
    await nextTurn();
    const parsed = parseLine(line);
    const valueOf = (name: string) => (name === '?' ? String(this.#lastCode) : (this.#env.get(name) ?? ''));
    if ('error' in parsed) {
      await this.#complain(`sh: ${parsed.error}\n`);
      return { code: (this.#lastCode = 2), isExit: this.request.command !== null };
    }
    for (const { after, texts } of parsed.commands) {
      if ((after === '&&' && this.#lastCode !== 0) || (after === '||' && this.#lastCode === 0)) continue;
      await nextTurn();
      const words = texts.map((text) => expand(text, valueOf));
      if (words.reduce((sum, { length }) => sum + length, 0) > mostOfCommand) {
        await this.#complain('sh: the command is too long\n');
        return { code: (this.#lastCode = 126), isExit: this.request.command !== null };
      }
      const outcome = await this.#runWords(words);
      this.#lastCode = outcome.code;
      if (outcome.isExit || this.#running.signal.aborted) return outcome;
    }
    return { code: this.#lastCode, isExit: false };
  }

  async #runWords([name = '', ...words]: readonly string[]): Promise<Outcome> {
    if (name === 'exit')
      return { code: words[0] === undefined ? this.#lastCode : Number(words[0]) & 255, isExit: true };
    if (unknown.test(name)) {
      await this.#complain(`sh: This shell is simulated: it has no ${name}.\n`);
      return { code: 2, isExit: this.request.command !== null };
    }
    const program = programs.get(name);
    if (!program) {
      await this.#complain(`sh: ${name}: command not found (this pod is simulated; help lists what there is)\n`);
      return { code: 127, isExit: false };
    }
    const { signal } = this.#running;
    const [print, complain] = [this.#print.bind(this), this.#complain.bind(this)];
    const input = this.#input.pieces(signal);
    return {
      code: await program({ pod: this.pod, words, env: this.#env, input, signal, print, complain }),
      isExit: false,
    };
  }

  #print(data: string | Buffer): Promise<void> {
    return this.#write(this.stdout, data);
  }

  #complain(text: string): Promise<void> {
    return this.#write(this.request.terminal ? this.stdout : this.stderr, text);
  }

  /** In turn: what is typed is echoed while a program prints. */
  #write(outlet: Outlet, data: string | Buffer): Promise<void> {
    const bytes = this.request.terminal ? Buffer.from(String(data).replace(/\r?\n/g, '\r\n')) : Buffer.from(data);
    this.#writing = this.#writing.then(() =>
      this.#over.signal.aborted || bytes.length === 0 ? undefined : outlet.offer(bytes),
    );
    return this.#writing;
  }

  #interrupt(): void {
    this.#lastCode = codes.INT ?? 0;
    if (this.request.command === null) this.#running.abort();
    else this.#ended.resolve(this.#lastCode);
  }

  resize({ columns, rows }: TerminalSize): Promise<void> {
    this.#env.set('COLUMNS', String(columns)).set('LINES', String(rows));
    return Promise.resolve();
  }

  signal(name: string): Promise<void> {
    const [, signal] = /^SIG([A-Z]{2,6}\d?)$/.exec(name) ?? [];
    if (!signal)
      return Promise.reject(new ClusterError('invalid', 'A signal must be a name such as SIGINT or SIGUSR1.'));
    const code = codes[signal];
    if (signal === 'INT') this.#interrupt();
    else if (code !== undefined) this.#ended.resolve(code);
    return Promise.resolve();
  }

  /** The pod has ended. */
  kill(): void {
    this.#ended.resolve(codes.KILL ?? null);
  }

  async close(): Promise<void> {
    this.stdout.destroy();
    this.stderr.destroy();
    this.#ended.resolve(codes.HUP ?? null);
    await this.exit;
  }
}

function environmentOf({ podName, slices }: ShownPod, env: ReadonlyMap<string, string>): Map<string, string> {
  const named = slices.map(
    ({ gpuUuid, profile, slotStart }) => `${gpuUuid}:${profile}${slotStart === null ? '' : `@${slotStart}`}`,
  );
  const own = { HOME: '/root', USER: 'root', HOSTNAME: podName, PWD: '/workspace', ATOLL_SLICES: named.join(',') };
  return new Map([...Object.entries(own), ...env]);
}
