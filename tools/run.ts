import { spawn, type ChildProcess } from 'node:child_process';
import { constants, setPriority } from 'node:os';

export interface Outcome {
  ok: boolean;
  /** Its exit code; null where it did not start, or was killed. */
  code: number | null;
  /** What it printed, where that was captured. */
  output: string;
  durationMs: number;
}

/** What has been proven so far. A check counts as one test. */
export interface Tally {
  passed: number;
  failed: number;
  /** Specs that need something which this machine lacks: see `describeWhere` of libs/testing. */
  skipped: number;
}

interface RunOptions {
  /** Keep what is printed instead of letting it through. */
  capture?: boolean;
  env?: Record<string, string>;
  /** It and what it starts get what the processors have left of other work. */
  background?: boolean;
}

export const root = new URL('..', import.meta.url);

/** Ctrl-C and SIGTERM are passed on, and end this process once its children have ended. */
const running = new Set<ChildProcess>();
let stopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    stopping = true;
    for (const child of running) child.kill(signal);
    if (!running.size) process.exit(130);
  });
}

/**
 * Runs one command in the project's root, without a shell and without stdin: `oxfmt --check .`. Words that may have
 * spaces in them are given as a list.
 */
export function run(command: string | readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const [file = '', ...args] = typeof command === 'string' ? command.split(' ') : command;
  const startedAtMs = performance.now();
  const stdio = options.capture ? 'pipe' : 'inherit';
  const child = spawn(file, args, {
    cwd: root,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', stdio, stdio],
  });
  running.add(child);
  // One that could not start has no pid.
  if (options.background && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  let output = '';
  const collect = (chunk: Buffer) => (output += chunk.toString());
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  return new Promise((resolve) => {
    const finish = (code: number | null) => {
      running.delete(child);
      if (stopping && !running.size) process.exit(130);
      resolve({ ok: code === 0, code, output, durationMs: performance.now() - startedAtMs });
    };
    child.on('error', (error) => {
      output += `${error.message}\n`;
      if (!options.capture) console.error(error.message);
      finish(null);
    });
    child.on('close', finish);
  });
}
