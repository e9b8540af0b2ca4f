import { removeLeftPodmanFolders } from './podman-folder.ts';
import { removeServerFolder } from './server-folder.ts';

/**
 * Stops the PostgreSQL that a worker of this run may have started, and removes its data; the same for containers of a
 * worker that was killed.
 */
function teardown(): void {
  const { ATOLL_TEST_RUN_DIR: runDir, ATOLL_TEST_RUN_OWNER: owner } = process.env;
  if (!runDir || owner !== String(process.pid)) return;
  removeServerFolder(runDir);
  removeLeftPodmanFolders();
}

export { teardown as default };
