import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Names the folder in which the workers of one Jest run share what they start (`createDatabase`). */
function setup(): void {
  process.env.ATOLL_TEST_RUN_DIR = mkdtempSync(join(tmpdir(), 'atoll-run-'));
}

export { setup as default };
