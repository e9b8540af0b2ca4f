import { afterAll, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { freePort, makeServerFolder, timeoutFactor } from '@atoll/testing';
import { until } from '../own-platform.js';

/** Of this machine, and nothing else listens there. */
const address = '127.0.0.2';
const folder = makeServerFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it(
  'services that listen on one address alone are said to be ready there',
  async () => {
    const port = await freePort();
    const supervisor = spawn(process.execPath, ['dist/tools/start-services.js'], {
      env: { ...process.env, HOST: address, PORT: String(port), ATOLL_DATA_DIR: folder, ATOLL_SSH_PORT: '0' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ended = once(supervisor, 'exit');
    let output = '';
    supervisor.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    try {
      const url = `http://${address}:${port}`;
      await until(() => Promise.resolve(output.includes('Atoll is ready') || undefined));
      expect(output).toContain(`Console  ${url}/`);
      expect(output).toContain(`API      ${url}/api`);
      expect((await fetch(`${url}/livez`)).status).toBe(200);
    } finally {
      supervisor.kill('SIGTERM');
      await ended;
    }
  },
  240_000 * timeoutFactor,
);
