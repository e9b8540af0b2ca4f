import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { OwnProcesses } from './own-processes.js';

export interface Supervision {
  /** Where the processes that run are written down. */
  readonly own: Pick<OwnProcesses, 'add' | 'remove'>;
  /** The processes that run, by name. */
  readonly children: Map<string, ChildProcess>;
  /** Once aborted, nothing is started any more. */
  readonly stopping: AbortSignal;
  readonly restartAfterMs: number;
  /** `problem`: why it starts again, or undefined where it has started. */
  readonly tell: (line: string, problem?: true) => void;
}

/**
 * Runs one process and starts it again whenever it dies, as a container's restart policy does; also where it cannot be
 * started, as without memory, or not be written down, as on a full disk. Never throws.
 */
export async function keepRunning(name: string, start: () => ChildProcess, supervision: Supervision): Promise<void> {
  const { stopping, restartAfterMs, tell } = supervision;
  while (!stopping.aborted) {
    const why = await runOnce(name, start, supervision).catch((error: Error) => `cannot run: ${error.message}`);
    if (stopping.aborted) return;
    tell(`${name} ${why}; it starts again in ${restartAfterMs} ms`, true);
    await delay(restartAfterMs, undefined, { signal: stopping }).catch(() => undefined);
  }
}

/** Returns how it ended. Throws if it cannot be started or written down; then it does not run any more either. */
async function runOnce(name: string, start: () => ChildProcess, supervision: Supervision): Promise<string> {
  const { own, children, tell } = supervision;
  const child = start();
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  // One without an id was not started, and says why by an error.
  if (child.pid !== undefined) {
    children.set(name, child);
    try {
      own.add(child.pid);
      tell(`${name}: process ${child.pid}`);
    } catch (error) {
      // The next start would not know that it is to be ended.
      child.kill('SIGKILL');
      await ended;
      children.delete(name);
      throw error;
    }
  }
  const [code, signal] = await ended;
  children.delete(name);
  own.remove(child.pid);
  return `ended (${signal ?? `code ${code}`})`;
}
