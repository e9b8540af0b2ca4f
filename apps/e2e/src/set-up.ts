import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runningPostgresUrl } from '@atoll/database';
import { freePort, makeServerFolder, removeAbandonedServerFolders, removeLeftPodmanFolders } from '@atoll/testing';
import { startPlatform, type RunningPlatform, type Topology } from './running-platform.js';

let platform: RunningPlatform | undefined;
let folder: string | undefined;
let output: string | undefined;

/**
 * Before the suite: starts the platform in the topology of `ATOLL_TOPOLOGY`, unless `ATOLL_E2E_URL` names one that runs
 * already, and `ATOLL_E2E_DATABASE_URL` its database.
 */
async function setUp(): Promise<void> {
  // All processes of the suite, of which most are platforms that start, share what Node has compiled. An entry is
  // replaced when its file changes.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../../.compile-cache', import.meta.url));
  process.env.ATOLL_TEST_RUN_OWNER = String(process.pid);
  removeLeftPodmanFolders();
  output = makeServerFolder();
  process.env.ATOLL_E2E_OUTPUT = output;
  // Stories on containers start platforms of their own.
  if (process.env.ATOLL_E2E_URL || process.env.ATOLL_E2E_PART === 'on-containers') return;
  const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;
  // Stories bring bare-metal hosts of their own, on loopback.
  const compatPort = String(await freePort());
  folder = makeServerFolder();
  platform = await startPlatform(topology, {
    ATOLL_DATA_DIR: folder,
    ATOLL_ALLOW_LOOPBACK_HOSTS: 'true',
    ATOLL_BAREMETAL_HEALTH_SECONDS: '1',
    ATOLL_COMPAT_PORT: compatPort,
  });
  process.env.ATOLL_E2E_COMPAT_URL = `http://127.0.0.1:${compatPort}`;
  process.env.ATOLL_E2E_URL = platform.url;
  process.env.ATOLL_E2E_DATABASE_URL = process.env.DATABASE_URL ?? runningPostgresUrl(folder);
  process.env.ATOLL_E2E_ADMIN_KEY = platform.adminKey;
}

/** After the suite: stops it. That it stops cleanly is part of the suite. */
export async function tearDown(): Promise<void> {
  await platform?.stop();
  // Those of Jest's workers, which have ended.
  removeAbandonedServerFolders();
  removeLeftPodmanFolders();
  for (const made of [folder, output]) if (made !== undefined) rmSync(made, { recursive: true, force: true });
}

export { setUp as default };
