import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createApiKey, isWellFormedApiKey } from '@atoll/api-keys';
import { createDatabase, describeWhere, freePort, makeServerFolder } from '@atoll/testing';
import pg from 'pg';
import { startPlatform, type RunningPlatform } from '../running-platform.js';

let folder = '';
let platform: RunningPlatform | undefined;

/** One for all stories of a group. */
function useFolder(): void {
  beforeAll(() => {
    folder = makeServerFolder();
  });
  afterAll(async () => {
    await platform?.stop();
    platform = undefined;
    rmSync(folder, { recursive: true, force: true });
  });
}

/** `npm start`, without the build that goes before it. */
const npmStart = ['npm', 'run', '--silent', '--ignore-scripts', 'start'];

/** Runs one of the built commands, or this one, to its end. */
async function run(
  entry: string | string[],
  env: Record<string, string>,
  onOutput?: (output: string, child: ChildProcess) => void,
): Promise<{ code: number; output: string }> {
  const [program = '', ...args] = typeof entry === 'string' ? [process.execPath, `dist/${entry}`] : entry;
  const child = spawn(program, args, { env: { ...process.env, ...env } });
  let output = '';
  const hear = (chunk: Buffer) => {
    output += chunk.toString();
    onOutput?.(output, child);
  };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', hear);
  const [code] = (await once(child, 'close')) as [number];
  return { code, output };
}

/** An answer as it would be with other ids, keys and links, and at another time. */
function withoutIds(json: string): unknown {
  const volatile =
    /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|atl_[0-9A-Za-z…]+|http\S+?(?=")|[-\d]{10}T[\d:]{8}\.\d{3}Z/g;
  return JSON.parse(json.replace(volatile, '…'));
}

async function statusWith(key: string, url = platform?.url): Promise<number> {
  return (await fetch(`${url}/api/user/profile`, { headers: { authorization: `Bearer ${key}` } })).status;
}

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50));
}

const lacking = spawnSync('curl', ['--version']).error ? 'it needs curl' : undefined;

/** Each of these stories goes on where the one before has ended. */
describe('a data folder', () => {
  useFolder();
  const anyKey = /atl_[0-9A-Za-z]{38}/;
  // A key that is given is not printed; an empty variable is none.
  const env = () => ({ ATOLL_DATA_DIR: folder, ATOLL_ADMIN_KEY: '' });
  const startAgain = async (settings: Record<string, string> = {}) => {
    platform = await startPlatform('one-process', { ...env(), ...settings });
    expect(platform.output()).toContain('npm run admin-key');
    expect(platform.output()).not.toMatch(anyKey);
    return platform;
  };
  /** The key that `npm run admin-key` makes. */
  const keyByHand = async () => {
    const { code, output } = await run('apps/platform/src/admin-key.js', { ATOLL_DATA_DIR: folder });
    expect(code).toBe(0);
    return anyKey.exec(output)?.[0] ?? '';
  };
  let first: string;
  let key: string;

  it('is not touched by a start on a port that is taken, which says so', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const { code, output } = await run('apps/platform/src/main.js', { ...env(), PORT: String(port) });
    other.close();
    expect(code).toBe(1);
    const said = output.split('\n').filter((line) => line !== '' && !line.includes('"msg":"starting"'));
    expect(said).toEqual([
      `Atoll cannot start: port ${port} is taken by another program. Choose another: PORT=${port + 1} npm start`,
    ]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('loses nothing to a start that is told to stop before it is ready, which stops as cleanly', async () => {
    let isTold = false;
    const { code, output } = await run(
      'apps/platform/src/main.js',
      { ...env(), PORT: String(await freePort()), ATOLL_SSH_PORT: '0' },
      (said, child) => {
        if (!isTold && said.includes('"msg":"starting"')) isTold = child.kill('SIGTERM');
      },
    );
    expect([code, output]).toEqual([0, expect.stringContaining('"msg":"stopped"')]);
    expect(output).not.toMatch(/"level":"(error|fatal)"/);
    // It goes no further than the service that it was starting, and makes no key that nobody would see.
    const [, afterwards = ''] = output.split('"msg":"stopping"');
    expect(new Set(afterwards.match(/Migrated \w+/g)).size).toBeLessThanOrEqual(1);
  });

  it('gets a key at its first start, printed with the documentation and a call that works; PORT=0 takes a free port, and all that is shown names it', async () => {
    let answered: Promise<number> | undefined;
    const docs = /^ {2}Docs +(http\S+)\/api\/docs$/m;
    // The signal goes to npm, as a supervisor would send it, and ends the platform.
    const { code, output } = await run(npmStart, { ...env(), PORT: '0', ATOLL_SSH_PORT: '0' }, (said, child) => {
      const shown = /"Authorization: Bearer (\S+)" (\S+)\/api\/user\/profile\n/.exec(said);
      if (shown) answered ??= statusWith(shown[1] ?? '', shown[2]).finally(() => child.kill('SIGTERM'));
    });
    expect({ answered: await answered, code, output }).toMatchObject({ answered: 200, code: 0 });
    expect(output).toContain('"msg":"stopped"');
    [first = ''] = anyKey.exec(output) ?? [];
    const url = docs.exec(output)?.[1] ?? '';
    expect(output).toContain(`curl -s -H "Authorization: Bearer ${first}" ${url}/api/user/profile`);
    const { port } = new URL(url);
    expect(Number(port)).toBeGreaterThan(0);
    expect(output).toContain(`http://localhost:${port}/link#`);
  });

  it('gets another key for its operator by hand, which the next start takes in place of the first, and prints none', async () => {
    key = await keyByHand();
    await startAgain();
    expect([await statusWith(key), await statusWith(first)]).toEqual([200, 401]);
  });

  describeWhere(lacking, 'the README', () => {
    it('says what its first five calls answer, pasted line by line', async () => {
      const [, chapter = ''] = /^## The first five calls\n(.*?)^## /ms.exec(readFileSync('README.md', 'utf8')) ?? [];
      const blocks = (language: string) =>
        [...chapter.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(([, text = '']) => text);
      const [given = '', ...scripts] = blocks('sh');
      expect(given.match(/(?<=^export )\w+/gm)).toEqual(['ATOLL_URL', 'ATOLL_KEY']);
      const answers = blocks('json').filter((json) => !json.includes('"statusCode"'));
      expect(answers).toHaveLength(5);
      const env = { ATOLL_URL: platform?.url ?? '', ATOLL_KEY: key };
      const { output } = await run(['sh', '-c', scripts.join('echo\n')], env);
      const printed = output.split('\n').filter((line) => line !== '');
      expect(printed.map(withoutIds)).toEqual(answers.map(withoutIds));
    });
  });

  it('is that of one platform: a second start says who holds it', async () => {
    await expect(startPlatform('one-process', { ATOLL_DATA_DIR: folder })).rejects.toThrow(
      `is in use by process ${platform?.process.pid}`,
    );
    expect(await statusWith(key)).toBe(200);
  });

  it('gets another key by hand beside the running platform too', async () => {
    const before = key;
    key = await keyByHand();
    expect(await statusWith(key)).toBe(200);
    await until(async () => (await statusWith(before)) === 401);
  });

  it('has kept everything, its key too, where the platform was killed outright; the next start limits callers where it is told to', async () => {
    const headers = () => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' });
    const call = (path: string, init: RequestInit = {}) =>
      fetch(`${platform?.url}/api${path}`, { ...init, headers: headers() });
    const created = await call('/team', { method: 'POST', body: '{"name": "Survivors"}' });
    const { id } = (await created.json()) as { id: string };
    platform?.process.kill('SIGKILL');
    if (platform) await once(platform.process, 'exit');

    await startAgain({ ATOLL_LIMITS: 'on', ATOLL_LIMIT_ADMIN: '5/60' });
    const found = await call(`/team/${id}`);
    expect([found.status, await found.json()]).toEqual([200, expect.objectContaining({ id, name: 'Survivors' })]);
    let refused: Response | undefined;
    await until(async () => {
      refused = await call('/user/profile');
      return refused.status === 429;
    });
    // In the words of the reference.
    expect(await refused?.json()).toMatchObject({
      code: 'too_many_requests',
      detail: 'Too many requests. Please try again later.',
      message: 'Too many requests. Please try again later.',
    });
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused?.headers.get('ratelimit')).toBeTruthy();
    expect(refused?.headers.get('ratelimit-policy')).toBeTruthy();
  });

  it('is not started under another pepper, until its operator makes a key under that one because the earlier one is lost', async () => {
    await platform?.stop();
    const other = { ATOLL_KEY_PEPPER: 'a pepper of another platform' };
    const brought = { ATOLL_ADMIN_KEY: createApiKey() };
    const started = await run('apps/platform/src/main.js', { ...env(), ...other, PORT: '0', ATOLL_SSH_PORT: '0' });
    expect([started.code, started.output]).toEqual([
      1,
      expect.stringMatching(
        /^Atoll cannot start: ATOLL_KEY_PEPPER is not the one under which this platform's API keys/m,
      ),
    ]);
    const byHand = (...options: string[]) =>
      run([process.execPath, 'dist/apps/platform/src/admin-key.js', ...options], { ...env(), ...other, ...brought });
    for (const options of [[], ['--new']]) expect(await byHand(...options)).toMatchObject({ code: 1 });
    await startAgain();
    expect(await statusWith(key)).toBe(200);

    await platform?.stop();
    const { output } = await byHand('--new-pepper');
    expect(output).toContain('remove ATOLL_ADMIN_KEY wherever the platform is started');
    await startAgain(other);
    expect([await statusWith(anyKey.exec(output)?.[0] ?? ''), await statusWith(key)]).toEqual([200, 401]);
  });
});

describe('a start', () => {
  useFolder();

  it.each([
    [
      'apps/platform/src/main.js',
      // Of a service's own, a file that is away, of the last service, of the gateway.
      {
        ...{ ATOLL_STEPS: '?', ATOLL_KEY_PEPPER: '?', ATOLL_TLS_CERT: '/nope', ATOLL_TLS_KEY: '/nope' },
        ...{ ATOLL_EXPOSED_PORTS: '5-4', ATOLL_LIMITS: 'no', ATOLL_ADMIN_KEY: 'short' },
      },
      [
        'ATOLL_ADMIN_KEY must be a key that "npm run admin-key -- --print" makes: atl_ and 38 letters or digits, of which the last six are a checksum',
        'ATOLL_EXPOSED_PORTS must be from a lower to a higher port, 65535 at most.',
        'ATOLL_KEY_PEPPER must be at least 16 characters long',
        'ATOLL_LIMITS must be on or off',
        'ATOLL_STEPS must be a whole number from 1 to 10000',
        'ATOLL_TLS_CERT: /nope cannot be read: no such file or directory. ATOLL_TLS_KEY: /nope cannot be read: no such file or directory.',
        'PORT must be a whole number from 0 to 65535',
      ],
    ],
    [
      'tools/start-services.js',
      // Of a service, of the gateway, of every service, and its own. Not again and again, as by processes that restart.
      {
        ...{ ATOLL_STEPS: '?', ATOLL_TLS_CERT: '/nope', ATOLL_LIMITS: 'no', ATOLL_EVENTS_MAX_MIB: '1' },
        ...{ ATOLL_REPLICAS: 'team=2', ATOLL_BUS_SECRET: 'a secret of some length,short', NATS_URL: 'nats://' },
      },
      [
        'ATOLL_BUS_SECRET must be one or more secrets of at least 16 characters, separated by commas; entry 2 is not',
        'ATOLL_EVENTS_MAX_MIB must be a whole number of MiB from 16 to 999999999',
        'ATOLL_LIMITS must be on or off',
        expect.stringMatching(/^ATOLL_REPLICAS .* This is not: team=2$/),
        'ATOLL_STEPS must be a whole number from 1 to 10000',
        'ATOLL_TLS_CERT needs ATOLL_TLS_KEY: set both, or neither.',
        expect.stringMatching(/^NATS_URL must be .*; entry 1 is not$/),
        'PORT must be a whole number from 0 to 65535',
      ],
    ],
  ])(
    'of %s that is refused says all that is wrong and nothing else, before it starts anything',
    async (entry, env, faults) => {
      const { code, output } = await run(entry, { ATOLL_DATA_DIR: folder, PORT: '?', ...env });
      const said = output.split('\n').filter((line) => line !== '' && !line.includes('"msg":"starting"'));
      const [refusal, ...wrong] = said;
      expect([code, refusal]).toEqual([1, 'Atoll cannot start: Invalid environment variables:']);
      expect(wrong.map((line) => line.replace(/^ {2}/, '')).toSorted()).toEqual(faults);
      expect(readdirSync(folder)).toEqual([]);
    },
  );

  it('ends at an option that it does not know, before it starts anything', async () => {
    const { code, output } = await run(
      [process.execPath, 'dist/apps/platform/src/main.js', '--dmeo'],
      { ATOLL_DATA_DIR: folder, PORT: '0', ATOLL_SSH_PORT: '0' },
      (said, child) => said.includes('"msg":"starting"') && child.kill('SIGTERM'),
    );
    expect([code, output]).toEqual([
      1,
      'Atoll cannot start: There is no option --dmeo. Usage: npm start [-- --demo]\n',
    ]);
  });

  it('that waits for a database which does not answer ends at once, and cleanly, when it is told to stop', async () => {
    let isTold = false;
    const waiting = { DATABASE_URL: 'postgres://127.0.0.1:1/atoll', PORT: '0', ATOLL_SSH_PORT: '0' };
    const { code, output } = await run(
      'apps/platform/src/main.js',
      { ATOLL_DATA_DIR: folder, ...waiting },
      (said, child) => {
        if (!isTold && said.includes('Trying again')) isTold = child.kill('SIGTERM');
      },
    );
    expect([code, output]).toEqual([0, expect.stringContaining('"msg":"stopped"')]);
  });

  it('in processes is refused for a secret of its data folder that is none, before any is started', async () => {
    writeFileSync(
      join(folder, 'secrets.json'),
      JSON.stringify({ busSecret: 'short', keyPepper: 'short', sealKeys: 'x' }),
    );
    const port = String(await freePort());
    const { code, output } = await run('tools/start-services.js', { ATOLL_DATA_DIR: folder, PORT: port });
    rmSync(join(folder, 'secrets.json'));
    expect(code).toBe(1);
    expect(output).toMatch(/^Atoll cannot start: Invalid environment variables:\n/);
    for (const name of ['ATOLL_BUS_SECRET', 'ATOLL_KEY_PEPPER', 'ATOLL_SEAL_KEYS'])
      expect(output).toContain(`  ${name} `);
    expect(output).not.toMatch(/process \d+/);
  });

  it('in processes refuses a port that is taken, before it starts anything', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const taken = await run('tools/start-services.js', { ATOLL_DATA_DIR: folder, PORT: String(port) });
    other.close();
    expect(taken.code).toBe(1);
    expect(taken.output).toMatch(
      /^Atoll cannot start: port \d+ is taken by another program\. Choose another: PORT=\d+ npm run start:services\n$/,
    );
  });

  it.each(['apps/platform/src/main.js', 'tools/start-services.js', 'apps/gateway/src/main.js'])(
    'of %s is refused before it starts anything, where two of its ports are one',
    async (entry) => {
      const secrets = { ATOLL_BUS_SECRET: 'a secret of some length', ATOLL_KEY_PEPPER: 'a pepper of some length' };
      const port = String(await freePort());
      const { code, output } = await run(entry, {
        ...{ ...secrets, ATOLL_DATA_DIR: folder, NATS_URL: '' },
        ...{ PORT: port, ATOLL_COMPAT_PORT: port, ATOLL_SSH_PORT: port },
      });
      expect(code).toBe(1);
      expect(output).toContain(`ATOLL_COMPAT_PORT is ${port}, as PORT: they must differ`);
      if (!entry.includes('gateway')) expect(output).toContain(`ATOLL_SSH_PORT is ${port}, as PORT: they must differ`);
      expect(output).not.toContain('"msg":"starting"');
    },
  );

  it.each([
    ['apps/teams/src/main.js', ['DATABASE_URL', 'ATOLL_BUS_SECRET', 'ATOLL_KEY_PEPPER', 'ATOLL_SEAL_KEYS'], []],
    ['apps/billing/src/main.js', ['DATABASE_URL', 'ATOLL_BUS_SECRET'], ['ATOLL_REPORTS_AT_ONCE']],
    ['apps/gpuaas/src/main.js', ['DATABASE_URL', 'ATOLL_BUS_SECRET'], ['ATOLL_STEPS']],
    [
      'apps/pods/src/main.js',
      ['DATABASE_URL', 'ATOLL_BUS_SECRET', 'ATOLL_SEAL_KEYS'],
      ['ATOLL_TERMINAL_HOST', 'ATOLL_TLS_KEY'],
    ],
    ['apps/gateway/src/main.js', ['ATOLL_BUS_SECRET', 'ATOLL_KEY_PEPPER'], ['PORT', 'ATOLL_LIMITS']],
    ['apps/platform/src/admin-key.js', ['ATOLL_KEY_PEPPER', 'ATOLL_SEAL_KEYS'], ['DATABASE_URL']],
    ['apps/platform/src/dead-letters.js', [], ['DATABASE_URL', 'ATOLL_DEADLINE_MS']],
    ['apps/platform/src/reseal.js', ['ATOLL_SEAL_KEYS'], ['DATABASE_URL', 'ATOLL_LOG_LEVEL']],
  ])('of %s names at once all that is missing and all that is wrong', async (entry, missing, wrong) => {
    const env = Object.fromEntries([
      ['ATOLL_DATA_DIR', join(folder, entry.replaceAll('/', '-'))],
      ...missing.map((variable) => [variable, '']),
      ...wrong.map((variable) => [variable, '?']),
    ]) as Record<string, string>;
    const { code, output } = await run(entry, env);
    expect(code).toBe(1);
    const [first = '', ...faults] = output.trimEnd().split('\n');
    expect(first).toMatch(/: Invalid environment variables:$/);
    const named = faults.map((fault) => / {2}(\w+) (is missing: it must be )?/.exec(fault)?.slice(1));
    expect(named.toSorted()).toEqual(
      [
        ...missing.map((variable) => [variable, 'is missing: it must be ']),
        ...wrong.map((each) => [each, undefined]),
      ].toSorted(),
    );
  });

  it.each(['apps/platform/src/main.js', 'tools/start-services.js'])(
    'of %s ends before any service starts, where the user of the database may not create schemas',
    async (entry) => {
      const database = await createDatabase();
      const operator = new pg.Client(database.url);
      await operator.connect();
      const name = new URL(database.url).pathname.slice(1);
      await operator.query(`CREATE SCHEMA teams; REVOKE CREATE ON DATABASE ${name} FROM CURRENT_USER`);
      const env = { ATOLL_DATA_DIR: folder, PORT: '0', ATOLL_SSH_PORT: '0', DATABASE_URL: database.url };
      const { code, output } = await run(entry, env);
      const { rowCount } = await operator.query(`SELECT FROM pg_tables WHERE schemaname = 'teams'`);
      await operator.end();
      await database.drop();
      expect([code, rowCount]).toEqual([1, 0]);
      expect(output).toContain(
        `Atoll cannot start: The user of DATABASE_URL may not create schemas in ${name}: GRANT CREATE ON DATABASE ${name} TO `,
      );
      expect(output).not.toContain('starts again');
    },
  );

  it('no key is made where there is no platform', async () => {
    const { code, output } = await run('apps/platform/src/admin-key.js', { ATOLL_DATA_DIR: join(folder, 'elsewhere') });
    expect([code, output]).toEqual([
      1,
      `Nothing was done: ${join(folder, 'elsewhere')} contains no platform. Set ATOLL_DATA_DIR to its data folder, or DATABASE_URL to its database.\n`,
    ]);
  });

  it('a key for ATOLL_ADMIN_KEY is printed where there is no platform, and stored nowhere', async () => {
    const before = readdirSync(folder);
    const print = [process.execPath, 'dist/apps/platform/src/admin-key.js', '--print'];
    const { code, output } = await run(print, { ATOLL_DATA_DIR: join(folder, 'elsewhere'), DATABASE_URL: '' });
    expect([code, isWellFormedApiKey(output.trimEnd())]).toEqual([0, true]);
    expect(readdirSync(folder)).toEqual(before);
  });
});
