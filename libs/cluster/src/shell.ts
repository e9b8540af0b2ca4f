import type { Duplex, Readable, Writable } from 'node:stream';

/** A terminal's size, characters. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface ShellRequest {
  /** What runs in the pod; null: a log-in shell, the best that the image has. */
  readonly command: readonly string[] | null;
  /** null: no terminal, with stderr apart. */
  readonly terminal: (TerminalSize & { readonly type: string }) | null;
  readonly env: ReadonlyMap<string, string>;
}

/** How a process in a pod ended. */
export interface ShellExit {
  /** null where it was ended by a signal, or nobody can say. */
  readonly code: number | null;
  /** `SIGTERM`; null where it ended by itself. */
  readonly signal: string | null;
}

/**
 * A process inside of a pod, on behalf of one session. All streams obey back-pressure: nothing is read that its reader has not asked for.
 * `close` ends the process too, also where the client's side broke; so does the end of the pod.
 */
export interface Shell {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Ends at once where there is a terminal. */
  readonly stderr: Readable;
  readonly exit: Promise<ShellExit>;
  resize(size: TerminalSize): Promise<void>;
  /** `SIGINT`; to the process and what it started. */
  signal(name: string): Promise<void>;
  close(): Promise<void>;
}

/** A connection from inside of a pod's network. */
export type PodConnection = Duplex;
