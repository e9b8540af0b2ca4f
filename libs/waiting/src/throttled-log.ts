const everyMs = 60_000;

interface Kind {
  quietUntilMs: number;
  leftOut: number;
}

/** The argument of a Nest logger: a message with structured fields. */
export interface LogLine {
  message: string;
  request_id?: string;
}

/**
 * Writes the first line of a kind at once, then at most one a minute, which says how many were left out. For what
 * lasts, and for what a sender outside of this process can cause as often as it likes: the number of kinds must not be
 * up to that sender.
 */
export class ThrottledLog {
  readonly #kinds = new Map<string, Kind>();

  constructor(private readonly write: (line: LogLine) => void) {}

  log(kind: string, line: LogLine): void {
    const nowMs = performance.now();
    const known = this.#kinds.get(kind);
    if (known && nowMs < known.quietUntilMs) {
      known.leftOut += 1;
      return;
    }
    const leftOut = known?.leftOut ?? 0;
    this.#kinds.set(kind, { quietUntilMs: nowMs + everyMs, leftOut: 0 });
    this.write(
      leftOut === 0 ? line : { ...line, message: `${line.message} (${leftOut} more since the last such line)` },
    );
  }

  /** What lasted has ended: should it begin again, the next line is written at once. */
  forget(): void {
    this.#kinds.clear();
  }
}
