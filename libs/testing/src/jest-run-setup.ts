import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Names the folder in which the workers of one Jest run share what they start (`createDatabase`), unless several runs share one. A run that
 * is interrupted comes to no teardown: then its PostgreSQL ends with this process.
 */
function setup(): void {
  if (process.env.ATOLL_TEST_RUN_DIR) return;
  process.env.ATOLL_TEST_RUN_OWNER = String(process.pid);
  const runDir = mkdtempSync(join(tmpdir(), 'atoll-run-'));
  process.env.ATOLL_TEST_RUN_DIR = runDir;
  const end = (): void => endPostgres(runDir);
  process.once('exit', end);
  // A process that a signal ends comes to no `exit`.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      end();
      process.kill(process.pid, signal);
    });
  }
}

function endPostgres(runDir: string): void {
  try {
    process.kill(Number.parseInt(readFileSync(join(runDir, 'postgres', 'postgres', 'postmaster.pid'), 'utf8'), 10), 'SIGQUIT');
  } catch {
    // It was never started, or the teardown has ended it.
  }
}

export { setup as default };
