import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { timeoutFactor } from '@atoll/testing';
import { startPlatform, type RunningPlatform, type Topology } from './running-platform.js';

const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;
const timeoutMs = 120_000 * timeoutFactor;
let folder = '';
let platform: RunningPlatform | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-e2e-'));
});
afterEach(async () => {
  await platform?.stop();
  platform = undefined;
  rmSync(folder, { recursive: true, force: true });
});

it(
  'Ctrl-C in a terminal lets what is under way end, and leaves no process behind',
  async () => {
    const started = await startPlatform(topology, { ATOLL_DATA_DIR: folder }, { ownGroup: true });
    platform = started;
    const ended = once(started.process, 'exit');
    // As a terminal does: to the whole group.
    process.kill(-(started.process.pid ?? 0), 'SIGINT');
    expect(await ended).toEqual([0, null]);
    await expect(fetch(`${started.url}/livez`)).rejects.toThrow();
    expect(started.output()).not.toMatch(/"level":"(error|fatal)"/);
    platform = await startPlatform(topology, { ATOLL_DATA_DIR: folder });
  },
  timeoutMs,
);
