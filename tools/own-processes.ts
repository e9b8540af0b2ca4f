import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lockDataFolder, startOf } from '@atoll/database';
import { makeDataFolder } from '@atoll/service';

const patienceMs = 5_000;
const pollMs = 20;

/**
 * The processes that a supervisor started, in a file of its data folder: each with its id and the instant of its start,
 * since ids are used again. A supervisor that was killed leaves them running, and the next one ends them; nobody else's
 * are touched.
 */
export class OwnProcesses {
  readonly #pids = new Set<number>();

  private constructor(private readonly file: string) {}

  /**
   * Takes the folder for this process, and ends what an earlier supervisor of it left. Throws DataFolderInUseError
   * while another supervisor of the folder lives.
   */
  static async takeOver(dataDir: string, onEnd: (pid: number) => void = () => undefined): Promise<OwnProcesses> {
    const folder = join(dataDir, 'processes');
    makeDataFolder(folder);
    const release = lockDataFolder(folder);
    process.once('exit', release);
    const file = join(folder, 'started');
    await Promise.all(
      leftIn(file).map(async ([pid, start]) => {
        onEnd(pid);
        await end(pid, start);
      }),
    );
    const own = new OwnProcesses(file);
    own.write();
    return own;
  }

  add(pid: number | undefined): void {
    if (pid === undefined) return;
    this.#pids.add(pid);
    try {
      this.write();
    } catch (error) {
      // Its id may be another's one day.
      this.#pids.delete(pid);
      throw error;
    }
  }

  remove(pid: number | undefined): void {
    if (pid !== undefined && this.#pids.delete(pid)) this.write();
  }

  private write(): void {
    const lines = [...this.#pids].map((pid) => `${pid} ${startOf(pid)}\n`);
    writeFileSync(`${this.file}.new`, lines.join(''), { mode: 0o600 });
    renameSync(`${this.file}.new`, this.file);
  }
}

/** Those of the file that still run. */
function leftIn(file: string): [pid: number, start: string][] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  return text.split('\n').flatMap((line): [number, string][] => {
    const at = line.indexOf(' ');
    const [pid, start] = [Number(line.slice(0, at)), line.slice(at + 1)];
    return at > 0 && isRunning(pid, start) ? [[pid, start]] : [];
  });
}

function isRunning(pid: number, start: string): boolean {
  return pid > 0 && start !== '' && startOf(pid) === start;
}

async function end(pid: number, start: string): Promise<void> {
  signal(pid, 'SIGTERM');
  for (const untilMs = Date.now() + patienceMs; isRunning(pid, start); await delay(pollMs)) {
    if (Date.now() > untilMs) signal(pid, 'SIGKILL');
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}
