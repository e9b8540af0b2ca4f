import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A process that a spec has started, and what it says line by line on its standard output. */
export interface SpawnedProcess {
  readonly lines: string[];
  /** Sends it a signal. */
  kill(signal: NodeJS.Signals): void;
  /** Nobody reads what it says from then on. */
  stopListening(): void;
  /** Its exit code when it has ended; null where a signal ended it. */
  readonly ended: Promise<number | null>;
}

/** For `node --import`: Node.js then runs TypeScript of this repository. */
export const typescriptHooks = new URL('./typescript-hooks.ts', import.meta.url).href;

/**
 * Runs a TypeScript file of this repository, a fixture, in a process of its own. What it writes to standard error is
 * shown.
 */
export function spawnTypescript(file: URL, argv: readonly string[] = []): SpawnedProcess {
  const flags = ['--disable-warning=ExperimentalWarning', '--import', typescriptHooks, fileURLToPath(file), ...argv];
  const child: ChildProcess = spawn(process.execPath, flags, {
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  if (child.stdout) createInterface(child.stdout).on('line', (line) => lines.push(line));
  return {
    lines,
    kill: (signal) => void child.kill(signal),
    stopListening: () => void child.stdout?.destroy(),
    ended: new Promise((resolve) => child.once('close', resolve)),
  };
}
