/**
 * Bytes of lines that wait for a reader, as a kernel's terminal has it (termios(3), MAX_CANON). What comes beyond is
 * dropped.
 */
const roomBytes = 4_096;
/** Longest escape sequence, in keys. A longer one is treated as typed text. */
const longestEscape = 64;

const keys = {
  interrupt: '\u0003',
  end: '\u0004',
  erase: ['\u007f', '\b'],
  killLine: '\u0015',
  escape: '\u001b',
} as const;
const breaks = new Set(['\r', '\n']);

interface Effects {
  echo(text: string): void;
  interrupt(): void;
}

/**
 * A terminal's line editing: what is typed becomes lines. Lines, then null at the end of input, for one reader at a
 * time. A key takes the same time whatever was typed before, and what is kept is bounded.
 */
export class LineDiscipline {
  /** Keys of the line that is typed. */
  #line: string[] = [];
  readonly #escape = new EscapeSequence();
  readonly #lines: (string | null)[] = [];
  /** What `#lines` takes of the room. */
  #takenBytes = 0;
  #waiting: ((line: string | null) => void) | null = null;
  #isEnded = false;

  constructor(private readonly effects: Effects) {}

  /** `signal`: the reader leaves with null. */
  async next(signal: AbortSignal): Promise<string | null> {
    if (this.#lines.length > 0) return this.#take();
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
    for (const key of text) if (!this.#escape.takes(key)) this.#press(key);
  }

  /** Nothing more is typed. */
  end(): void {
    if (this.#line.length > 0) this.#give(this.#line.join(''));
    this.#isEnded = true;
    this.#waiting?.(null);
  }

  #press(key: string): void {
    if (key === keys.interrupt) {
      this.#line = [];
      this.effects.echo('^C\r\n');
      return this.effects.interrupt();
    }
    if (key === keys.end) {
      if (this.#line.length === 0) this.#give(null);
      return;
    }
    if (breaks.has(key)) {
      this.effects.echo('\r\n');
      const line = this.#line.join('');
      this.#line = [];
      return this.#give(line);
    }
    if (key === keys.killLine) return this.#erase(this.#line.length);
    if ((keys.erase as readonly string[]).includes(key)) return this.#erase(1);
    if (key < ' ' || this.#line.length >= roomBytes) return;
    this.#line.push(key);
    this.effects.echo(key);
  }

  #erase(count: number): void {
    const erased = this.#line.splice(Math.max(0, this.#line.length - count));
    this.effects.echo('\b \b'.repeat(erased.length));
  }

  #give(line: string | null): void {
    if (this.#waiting) return this.#waiting(line);
    if (this.#takenBytes >= roomBytes) return;
    this.#lines.push(line);
    this.#takenBytes += roomOf(line);
  }

  #take(): string | null {
    const line = this.#lines.shift() ?? null;
    this.#takenBytes -= roomOf(line);
    return line;
  }
}

const roomOf = (line: string | null): number => (line?.length ?? 0) + 1;

/** Arrows and the like (ECMA-48, 5.4): known, and of no effect. Their keys are counted and not kept. */
class EscapeSequence {
  #state: 'none' | 'begun' | 'control' | 'single' = 'none';
  #length = 0;

  /** Whether the next key belongs to a sequence. */
  takes(key: string): boolean {
    const state = this.#state;
    this.#state = 'none';
    if (key === keys.escape) return this.#goOn('begun', 1);
    if (state === 'none') return false;
    if (state === 'begun' && key === '[') return this.#goOn('control');
    if (state === 'begun' && key === 'O') return this.#goOn('single');
    if (state === 'begun' || (key >= '@' && key <= '~')) return true;
    return state === 'control' && key >= ' ' && key <= '?' && this.#length < longestEscape && this.#goOn('control');
  }

  #goOn(state: 'begun' | 'control' | 'single', length = this.#length + 1): true {
    this.#state = state;
    this.#length = length;
    return true;
  }
}
