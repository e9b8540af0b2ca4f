import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Stops the PostgreSQL that a worker of this run may have started, and removes its data. The server takes its pid file along when it ends. */
async function teardown(): Promise<void> {
  const { ATOLL_TEST_RUN_DIR: runDir, ATOLL_TEST_RUN_OWNER: owner } = process.env;
  if (!runDir || owner !== String(process.pid)) return;
  const pidFile = join(runDir, 'postgres', 'postgres', 'postmaster.pid');
  const until = Date.now() + 10_000;
  if (existsSync(pidFile)) stop(Number.parseInt(readFileSync(pidFile, 'utf8'), 10));
  while (existsSync(pidFile) && Date.now() < until) await delay(20);
  rmSync(runDir, { recursive: true, force: true });
}

function stop(pid: number): void {
  try {
    process.kill(pid, 'SIGQUIT');
  } catch {
    // Ended meanwhile.
  }
}

export { teardown as default };
