/** Bytes of lines that wait for a reader, as a kernel's terminal has it (termios(3), MAX_CANON). What comes beyond is dropped. */
const roomBytes = 4_096;

const keys = { interrupt: '\u0003', end: '\u0004', erase: ['\u007f', '\b'], killLine: '\u0015' } as const;
const breaks = new Set(['\r', '\n']);
/** Arrows and the like: known, and of no effect. */
// oxlint-disable-next-line no-control-regex -- keys of a terminal are control characters
const escape = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|O[@-~]|[^[O])/g;
// oxlint-disable-next-line no-control-regex -- as above
const unfinishedEscape = /\u001b(?:\[[0-9;?]*[ -/]*|O)?$/;

interface Effects {
  echo(text: string): void;
  interrupt(): void;
}

/** A terminal's line editing: what is typed becomes lines. Lines, then null at the end of input, for one reader at a time. */
export class LineDiscipline {
  #line = '';
  #unfinished = '';
  readonly #lines: (string | null)[] = [];
  #waiting: ((line: string | null) => void) | null = null;
  #isEnded = false;

  constructor(private readonly effects: Effects) {}

  /** `signal`: the reader leaves with null. */
  async next(signal: AbortSignal): Promise<string | null> {
    if (this.#lines.length > 0) return this.#lines.shift() ?? null;
    if (this.#isEnded || signal.aborted) return null;
    return new Promise((resolve) => {
      const leave = (): void => give(null);
      const give = (line: string | null): void => {
        this.#waiting = null;
        signal.removeEventListener('abort', leave);
        resolve(line);
      };
      this.#waiting = give;
      signal.addEventListener('abort', leave);
    });
  }

  type(text: string): void {
    const all = this.#unfinished + text;
    this.#unfinished = unfinishedEscape.exec(all)?.[0] ?? '';
    for (const key of all.slice(0, all.length - this.#unfinished.length).replace(escape, '')) this.#press(key);
  }

  /** Nothing more is typed. */
  end(): void {
    if (this.#line) this.#give(this.#line);
    this.#isEnded = true;
    this.#waiting?.(null);
  }

  #press(key: string): void {
    if (key === keys.interrupt) {
      this.#line = '';
      this.effects.echo('^C\r\n');
      return this.effects.interrupt();
    }
    if (key === keys.end) {
      if (!this.#line) this.#give(null);
      return;
    }
    if (breaks.has(key)) {
      this.effects.echo('\r\n');
      const line = this.#line;
      this.#line = '';
      return this.#give(line);
    }
    if (key === keys.killLine) return this.#erase([...this.#line].length);
    if ((keys.erase as readonly string[]).includes(key)) return this.#erase(1);
    if (key < ' ' || this.#line.length >= roomBytes) return;
    this.#line += key;
    this.effects.echo(key);
  }

  #erase(count: number): void {
    const typed = [...this.#line];
    const erased = Math.min(count, typed.length);
    this.#line = typed.slice(0, typed.length - erased).join('');
    this.effects.echo('\b \b'.repeat(erased));
  }

  #give(line: string | null): void {
    if (this.#waiting) this.#waiting(line);
    else if (this.#lines.reduce((sum, waiting) => sum + (waiting?.length ?? 0) + 1, 0) < roomBytes) this.#lines.push(line);
  }
}
