import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiKey } from '@atoll/api-keys';
import { freePort, timeoutFactor } from '@atoll/testing';
import { startPlatform, type RunningPlatform } from '../running-platform.js';

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

/** Runs one of the built commands to its end. */
async function run(
  entry: string,
  env: Record<string, string>,
  onOutput?: (output: string, child: ChildProcess) => void,
): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, [`dist/${entry}`], { env: { ...process.env, ...env } });
  let output = '';
  const hear = (chunk: Buffer) => {
    output += chunk.toString();
    onOutput?.(output, child);
  };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', hear);
  const [code] = (await once(child, 'close')) as [number];
  return { code, output };
}

async function statusWith(key: string): Promise<number> {
  return (await fetch(`${platform?.url}/api/user/profile`, { headers: { authorization: `Bearer ${key}` } })).status;
}

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50));
}

it(
  'PORT=0 takes a free port, and all that is shown names it',
  async () => {
    const env = { ATOLL_DATA_DIR: folder, PORT: '0', ATOLL_SSH_PORT: '0' };
    const { output } = await run('apps/platform/src/main.js', env, (said, child) => {
      if (/Try it:/.test(said)) child.kill('SIGTERM');
    });
    const docs = /^ {2}Docs +(http\S+)\/api\/docs$/m;
    expect(output).toMatch(docs);
    const url = docs.exec(output)?.[1] ?? '';
    expect(Number(new URL(url).port)).toBeGreaterThan(0);
    expect(output).toContain(`http://localhost:${new URL(url).port}/link#`);
  },
  timeoutMs,
);

describe('a first start', () => {
  it(
    'prints once a key, the documentation, and a call that works',
    async () => {
      // A key that is given is not printed; an empty variable is none.
      platform = await startPlatform('one-process', { ATOLL_DATA_DIR: folder, ATOLL_ADMIN_KEY: '' });
      const [key = ''] = /atl_[0-9A-Za-z]{38}/.exec(platform.output()) ?? [];
      expect(platform.output()).toContain(`${platform.url}/api/docs`);
      expect(platform.output()).toContain(`curl -s -H "Authorization: Bearer ${key}" ${platform.url}/api/user/profile`);
      expect(await statusWith(key)).toBe(200);
      await platform.stop();

      platform = await startPlatform('one-process', { ATOLL_DATA_DIR: folder, ATOLL_ADMIN_KEY: '' });
      expect(platform.output()).toContain('npm run admin-key');
      expect(platform.output()).not.toMatch(/atl_[0-9A-Za-z]{38}/);
      expect(await statusWith(key)).toBe(200);
    },
    timeoutMs,
  );

  it(
    'on a port that is taken says so, and loses nothing',
    async () => {
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      const { port } = other.address() as { port: number };
      const { code, output } = await run('apps/platform/src/main.js', { ATOLL_DATA_DIR: folder, PORT: String(port) });
      other.close();
      expect(code).toBe(1);
      const said = output.split('\n').filter((line) => line !== '' && !line.includes('"msg":"starting"'));
      expect(said).toEqual([`Atoll cannot start: port ${port} is taken by another program. Choose another: PORT=${port + 1} npm start`]);
      platform = await startPlatform('one-process', { ATOLL_DATA_DIR: folder, ATOLL_ADMIN_KEY: '' });
      expect(platform.output()).toMatch(/atl_[0-9A-Za-z]{38}/);
    },
    timeoutMs,
  );

  it('in processes refuses a port that is taken, and replicas that are none, before it starts anything', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const taken = await run('tools/start-services.js', { ATOLL_DATA_DIR: folder, PORT: String(port) });
    other.close();
    expect(taken.code).toBe(1);
    expect(taken.output).toMatch(
      /^Atoll cannot start: port \d+ is taken by another program\. Choose another: PORT=\d+ npm run start:services\n$/,
    );
    const replicas = await run('tools/start-services.js', {
      ATOLL_DATA_DIR: folder,
      PORT: String(port),
      ATOLL_REPLICAS: 'team=2',
    });
    expect([replicas.code, replicas.output]).toEqual([
      1,
      expect.stringMatching(/^Atoll cannot start: ATOLL_REPLICAS .* This is not: team=2\n$/),
    ]);
  });

  it(
    'that is told to stop before it is ready stops as cleanly, and loses nothing',
    async () => {
      let isTold = false;
      const stopped = run(
        'apps/platform/src/main.js',
        { ATOLL_DATA_DIR: folder, PORT: String(await freePort()), ATOLL_SSH_PORT: '0' },
        (output, child) => {
          if (!isTold && output.includes('"msg":"starting"')) isTold = child.kill('SIGTERM');
        },
      );
      const { code, output } = await stopped;
      expect([code, output]).toEqual([0, expect.stringContaining('"msg":"stopped"')]);
      expect(output).not.toMatch(/"level":"(error|fatal)"/);
      platform = await startPlatform('one-process', { ATOLL_DATA_DIR: folder });
      expect(await statusWith(platform.adminKey)).toBe(200);
    },
    timeoutMs,
  );
});

describe('the key of the operator', () => {
  it(
    'is made anew at the machine, beside a running platform and without one',
    async () => {
      const first = createApiKey();
      platform = await startPlatform('one-process', { ATOLL_DATA_DIR: folder, ATOLL_ADMIN_KEY: first });
      for (const running of [true, false]) {
        if (!running) await platform.stop();
        const { code, output } = await run('apps/platform/src/admin-key.js', { ATOLL_DATA_DIR: folder });
        expect(code).toBe(0);
        const [key = ''] = /atl_[0-9A-Za-z]{38}/.exec(output) ?? [];
        if (!running) platform = await startPlatform('one-process', { ATOLL_DATA_DIR: folder, ATOLL_ADMIN_KEY: '' });
        expect(await statusWith(key)).toBe(200);
      }
      await until(async () => (await statusWith(first)) === 401);
    },
    timeoutMs,
  );

  it('is not made where there is no platform', async () => {
    const { code, output } = await run('apps/platform/src/admin-key.js', { ATOLL_DATA_DIR: join(folder, 'elsewhere') });
    expect([code, output]).toEqual([
      1,
      `Nothing was done: ${join(folder, 'elsewhere')} holds no platform. Say where it is by ATOLL_DATA_DIR, or where its database is by DATABASE_URL.\n`,
    ]);
  });
});
