import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '@atoll/testing';
import { residentMiB, start, stop, untilReady } from './processes.js';

const restMs = 5_000;

export interface Footprint {
  /** From the start of the process to a ready platform, on an empty data folder and on one that is there. */
  readyMs: number;
  restartMs: number;
  /** Of the platform's process, the database's not counted. */
  residentMiB: number;
}

/** What the platform in one process takes to start and to be there. */
export async function measureFootprint(): Promise<Footprint> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-footprint-'));
  const port = await freePort();
  const startOnce = async () => {
    const startedAt = performance.now();
    const child = start('apps/platform/src/main.js', [], {
      PORT: String(port),
      ATOLL_DATA_DIR: folder,
      DATABASE_URL: '',
    });
    await untilReady(`http://127.0.0.1:${port}/readyz`);
    return { child, readyMs: performance.now() - startedAt };
  };
  const first = await startOnce();
  await stop(first.child);
  const second = await startOnce();
  await delay(restMs);
  const resident = await residentMiB(second.child.pid ?? 0);
  await stop(second.child);
  rmSync(folder, { recursive: true, force: true });
  return { readyMs: first.readyMs, restartMs: second.readyMs, residentMiB: resident };
}
