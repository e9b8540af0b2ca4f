import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf, makeServerFolder } from '@atoll/testing';

let folder: string;
beforeEach(() => {
  folder = makeServerFolder();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The nats-server that the process has started, which need not answer yet. */
function natsOf(pid: number): number | undefined {
  return childrenOf(pid).find((child) => {
    try {
      return readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('--ports_file_dir');
    } catch {
      // It has ended since it was listed.
      return false;
    }
  });
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('Ctrl-C while NATS starts leaves no process behind', async () => {
  const env = { ...process.env, PORT: '0', ATOLL_DATA_DIR: folder, DATABASE_URL: 'postgres://127.0.0.1:1/none' };
  const supervisor = spawn(process.execPath, ['dist/tools/start-services.js'], { env, stdio: 'ignore' });
  const ended = once(supervisor, 'exit');
  let nats: number | undefined;
  while (nats === undefined) {
    await delay(1);
    nats = natsOf(supervisor.pid ?? 0);
  }
  supervisor.kill('SIGINT');
  expect(await ended).toEqual([0, null]);
  expect(isRunning(nats)).toBe(false);
});
