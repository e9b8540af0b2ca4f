import { removeServerFolder } from './server-folder.ts';

/** Stops the PostgreSQL that a worker of this run may have started, and removes its data. */
function teardown(): void {
  const { ATOLL_TEST_RUN_DIR: runDir, ATOLL_TEST_RUN_OWNER: owner } = process.env;
  if (runDir && owner === String(process.pid)) removeServerFolder(runDir);
}

export { teardown as default };
