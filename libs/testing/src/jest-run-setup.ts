import { removeLeftPodmanFolders } from './podman-folder.ts';
import { makeServerFolder, removeAbandonedServerFolders, removeServerFolder } from './server-folder.ts';

/**
 * Names the folder in which the workers of one Jest run share what they start (`createDatabase`), unless several runs
 * share one. A run that is interrupted comes to no teardown: then its PostgreSQL ends with this process, and so do its
 * containers.
 */
function setup(): void {
  removeAbandonedServerFolders();
  removeLeftPodmanFolders();
  if (process.env.ATOLL_TEST_RUN_DIR) return;
  process.env.ATOLL_TEST_RUN_OWNER = String(process.pid);
  const runDir = makeServerFolder();
  process.env.ATOLL_TEST_RUN_DIR = runDir;
  const end = (): void => {
    removeServerFolder(runDir);
    removeLeftPodmanFolders();
  };
  process.once('exit', end);
  // A process that a signal ends comes to no `exit`.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      end();
      process.kill(process.pid, signal);
    });
  }
}

export { setup as default };
