import type { Duplex, Readable, Writable } from 'node:stream';

/** A terminal's size, characters. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface ShellRequest {
  /** Command to run in the pod; null for a log-in shell, bash if the image has it. */
  readonly command: readonly string[] | null;
  /** `type` is the value of TERM. null: no terminal, and stderr apart. */
  readonly terminal: (TerminalSize & { readonly type: string }) | null;
  readonly env: ReadonlyMap<string, string>;
}

/** How a process in a pod ended. */
export interface ShellExit {
  /** Exit code; 128 + n after signal n, as in shells; null if unknown, for example after a crash of the engine. */
  readonly code: number | null;
}

/**
 * A process in a pod, for one session of a user. All streams have back-pressure: a driver reads no more than its reader
 * consumes.
 *
 * The process ends when the pod ends, and after `close`, which a caller calls in any case, also when its client is
 * gone. As with an SSH server, what the user has detached from the session (`tmux`, `nohup`, `setsid`) continues in the
 * pod.
 */
export interface Shell {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Ends at once where there is a terminal. */
  readonly stderr: Readable;
  readonly exit: Promise<ShellExit>;
  resize(size: TerminalSize): Promise<void>;
  /** `SIGINT`: to the process and to those it has started in its session. */
  signal(name: string): Promise<void>;
  /** HUP to the session, and KILL to the process if it does not end. */
  close(): Promise<void>;
}

/**
 * A connection to a port inside a pod. It ends and closes when the pod ends, and when the connection to the cluster
 * breaks.
 */
export type PodConnection = Duplex;

const lineScript = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; else exec sh -c "$1"; fi';

/** The command that has the shell of the image read a line, as sshd does with what a client requests. */
export function commandOfLine(line: string): string[] {
  return ['sh', '-c', lineScript, 'sh', line];
}

/** The line that `commandOfLine` made the command of; null for any other command. */
export function lineOf(command: readonly string[]): string | null {
  return command[2] === lineScript ? (command[4] ?? null) : null;
}
