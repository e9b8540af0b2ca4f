import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-setup-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A run that has a server, in whose place a process stands that waits, and then receives a signal. */
const interrupted = (signal: string) => `
  import { mkdirSync, writeFileSync } from 'node:fs';
  import setup from ${JSON.stringify(new URL('jest-run-setup.ts', import.meta.url).href)};
  setup();
  if (!process.env.ATOLL_TEST_RUN_DIR.startsWith(process.env.TMPDIR)) throw new Error('It is not where TMPDIR says.');
  const folder = process.env.ATOLL_TEST_RUN_DIR + '/postgres/postgres';
  mkdirSync(folder, { recursive: true });
  writeFileSync(folder + '/postmaster.pid', process.env.SERVER);
  setInterval(() => undefined, 1000);
  process.kill(process.pid, '${signal}');
`;

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'a run that %s ends takes its server along, and its data',
  async (signal) => {
    const server = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)', 'its-data'], {
      stdio: 'ignore',
    });
    const ended = once(server, 'exit');
    try {
      const env = {
        ...process.env,
        NODE_OPTIONS: '',
        ATOLL_TEST_RUN_DIR: '',
        TMPDIR: folder,
        SERVER: `${server.pid}\nits-data`,
      };
      const run = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', interrupted(signal)], {
        env,
        stdio: 'inherit',
      });
      expect(await once(run, 'exit')).toEqual([null, signal]);
      expect(await ended).toEqual([null, 'SIGQUIT']);
      expect(readdirSync(folder)).toEqual([]);
    } finally {
      server.kill('SIGKILL');
    }
  },
);
