import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { typescriptHooks } from '@atoll/testing';
import { startEmbeddedPostgres, type EmbeddedPostgres, type EmbeddedPostgresOptions } from './embedded-postgres.js';
import { stopPostmaster } from './postmaster.js';
import { startOf } from './process-identity.js';

// One folder for all, and what it begins with is that of other specs: making the data is what takes time.
const home = mkdtempSync(join(tmpdir(), 'atoll-embedded-'));
const keptIn = join(import.meta.dirname, '../../../../.tools/postgres');
const dataDir = join(home, 'data');
const urlFile = join(home, 'url');
const running: EmbeddedPostgres[] = [];
const children: ChildProcess[] = [];
const serversElsewhere: number[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await Promise.all([
    ...running.splice(0).map((server) => server.stop()),
    ...serversElsewhere.splice(0).map(stopPostmaster),
  ]);
});
afterAll(() => rmSync(home, { recursive: true }));

async function start(options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
  const isFast = options.fast ?? true;
  const server = await startEmbeddedPostgres({ dataDir, fast: true, ...(isFast && { keptIn }), ...options });
  running.push(server);
  return server;
}

const durability = `SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') ORDER BY name`;

async function ask(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<object>(sql)).rows;
  } finally {
    await client.end();
  }
}

/**
 * A process of its own that starts the server and says its URL and pid; on SIGINT it asks once more, says the answer,
 * and stops.
 */
async function startElsewhere(
  outlivesProcess = false,
): Promise<{ child: ChildProcess; pid: number; lines: AsyncIterator<string> }> {
  const script = `import pg from 'pg';
    import { writeFileSync } from 'node:fs';
    import { startEmbeddedPostgres } from ${JSON.stringify(join(import.meta.dirname, 'embedded-postgres.ts'))};
    const { url, pid, stop } = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, fast: true, outlivesProcess: ${outlivesProcess} });
    process.on('SIGINT', async () => {
      const client = new pg.Client(url);
      await client.connect();
      console.log((await client.query('SELECT 42 AS answer')).rows[0].answer);
      await client.end();
      await stop();
      process.exit();
    });
    writeFileSync(${JSON.stringify(urlFile)}, JSON.stringify({ url }));
    setInterval(() => undefined, 1000);
    console.log(pid);`;
  const flags = ['--no-warnings', '--import', typescriptHooks, '--input-type=module', '-e', script];
  const child = spawn(process.execPath, flags, {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  children.push(child);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const pid = Number((await lines.next()).value);
  serversElsewhere.push(pid);
  return { child, pid, lines };
}

describe('startEmbeddedPostgres', () => {
  it('keeps its data and its password between starts, and stops without a trace', async () => {
    const first = await start();
    await ask(first.url, 'CREATE TABLE IF NOT EXISTS kept AS SELECT 7 AS number');
    expect(startOf(first.pid)).not.toBe('');
    await first.stop();
    expect(startOf(first.pid)).toBe('');
    const second = await start();
    expect(await ask(second.url, 'SELECT number FROM kept')).toEqual([{ number: 7 }]);
    expect(new URL(second.url).password).toBe(new URL(first.url).password);
    expect(statSync(join(dataDir, 'postgres.password')).mode & 0o777).toBe(0o600);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  });

  it('answers on loopback only, and only with the password', async () => {
    const { url } = await start();
    const elsewhere = new URL(url);
    const address = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .find(({ internal, family }) => !internal && family === 'IPv4');
    // A machine without a network has nothing but loopback.
    elsewhere.hostname = address?.address ?? '127.0.0.2';
    await expect(ask(elsewhere.href, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
    const wrong = new URL(url);
    wrong.password = 'sesame';
    await expect(ask(wrong.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
  });

  it('lets services in as a role that owns its database and cannot touch files', async () => {
    const { url } = await start();
    await ask(url, 'CREATE SCHEMA IF NOT EXISTS teams');
    await expect(ask(url, `SELECT pg_read_file('/etc/passwd')`)).rejects.toThrow('permission denied');
    await expect(ask(url, `COPY (SELECT 1) TO '/tmp/out'`)).rejects.toThrow('permission denied');
  });

  it('refuses a folder in use, naming the process', async () => {
    const { child, pid } = await startElsewhere();
    await expect(start()).rejects.toThrow(`The data folder ${dataDir} is in use by process ${child.pid}.`);
    expect(startOf(pid)).not.toBe('');
  });

  it('does not hear the Ctrl-C that its starter hears, which still needs it to end its work', async () => {
    const { child, pid, lines } = await startElsewhere();
    process.kill(-(child.pid ?? NaN), 'SIGINT');
    expect((await lines.next()).value).toBe('42');
    await once(child, 'exit');
    expect(startOf(pid)).toBe('');
  });

  it('goes on for others where it outlives its starter, however that ends', async () => {
    const { child, pid } = await startElsewhere(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { url } = JSON.parse(readFileSync(urlFile, 'utf8')) as { url: string };
    expect(await ask(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(startOf(pid)).not.toBe('');
  });

  it('starts again on data whose starter was killed outright', async () => {
    const { child } = await startElsewhere();
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { url } = await start();
    expect(await ask(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('stops the server that a killed starter left behind before it starts its own', async () => {
    const { child, pid } = await startElsewhere();
    process.kill(pid, 'SIGSTOP');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(startOf(pid)).not.toBe('');
    const notices: string[] = [];
    const server = await start({ onNotice: (notice) => notices.push(notice) });
    expect(notices).toEqual([`Stopping PostgreSQL (process ${pid}), left by a start that was killed.`]);
    expect(startOf(pid)).toBe('');
    expect(await ask(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('leaves alone a process that merely has the id of a server of former times', async () => {
    await (await start()).stop();
    const bystander = spawn('sleep', ['60']);
    children.push(bystander);
    writeFileSync(join(dataDir, 'postgres', 'postmaster.pid'), `${bystander.pid}\n${join(dataDir, 'postgres')}\n`);
    await start();
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
  });

  it('starts although a process of the same user has got the id of the server that a power cut ended', async () => {
    await (await start()).stop();
    const folder = join(dataDir, 'postgres');
    const { uid, gid } = statSync(folder);
    const bystander = spawn('sleep', ['60'], process.getuid?.() === 0 ? { uid, gid } : {});
    children.push(bystander);
    writeFileSync(join(folder, 'postmaster.pid'), `${bystander.pid}\n${folder}\n`);
    const { url } = await start();
    expect(await ask(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
  });

  it('starts although a power cut left the pid file empty', async () => {
    await (await start()).stop();
    writeFileSync(join(dataDir, 'postgres', 'postmaster.pid'), '');
    const { url } = await start();
    expect(await ask(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('says once that the server ended by itself, and nothing when it was stopped', async () => {
    const reasons: string[] = [];
    let tell: () => void = () => undefined;
    const told = new Promise<void>((resolve) => (tell = resolve));
    const onExit = (reason: string) => {
      reasons.push(reason);
      tell();
    };
    const { pid } = await start({ onExit });
    process.kill(pid, 'SIGKILL');
    await told;
    await running.pop()?.stop();
    const next = await start({ onExit });
    await next.stop();
    const log = join(dataDir, 'postgres.log');
    expect(reasons).toEqual([`PostgreSQL (process ${pid}) ended by itself: SIGKILL. Its log: ${log}`]);
  });

  it('begins anew after a first start that was cut off, and is durable unless told otherwise', async () => {
    const fresh = join(home, 'fresh');
    mkdirSync(join(fresh, 'postgres.new'), { recursive: true });
    writeFileSync(join(fresh, 'postgres.new', 'PG_VERSION'), '18\n');
    writeFileSync(join(fresh, 'postgres.password'), 'of no data\n');
    const { url } = await start({ dataDir: fresh, fast: false });
    expect(await ask(url, durability)).toEqual([
      { name: 'fsync', setting: 'on' },
      { name: 'full_page_writes', setting: 'on' },
      { name: 'synchronous_commit', setting: 'on' },
    ]);
  });

  it('gives the data a new password where the file with the old one was lost', async () => {
    const first = await start();
    await ask(first.url, 'CREATE TABLE IF NOT EXISTS kept AS SELECT 7 AS number');
    await first.stop();
    rmSync(join(dataDir, 'postgres.password'));
    const second = await start();
    expect(await ask(second.url, 'SELECT number FROM kept')).toEqual([{ number: 7 }]);
    expect(new URL(second.url).password).not.toBe(new URL(first.url).password);
  });

  it('does not touch data of another major version', async () => {
    await (await start()).stop();
    const version = join(dataDir, 'postgres', 'PG_VERSION');
    const found = readFileSync(version, 'utf8').trim();
    writeFileSync(version, '12\n');
    await expect(start()).rejects.toThrow(
      `was written by PostgreSQL 12; the installed PostgreSQL ${found} cannot read it`,
    );
    writeFileSync(version, `${found}\n`);
  });

  it('repeats what the server said when it does not start', async () => {
    await (await start()).stop();
    const file = join(dataDir, 'postgres', 'pg_hba.conf');
    writeFileSync(file, 'nonsense\n');
    await expect(start()).rejects.toThrow(/PostgreSQL did not start.*invalid connection type "nonsense"/s);
    chmodSync(file, 0o600);
    writeFileSync(file, 'host all all 127.0.0.1/32 scram-sha-256\n');
    await start();
  });
});
