import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chooseAccount, runAs } from './account.js';
import { findBinaries, type Binaries } from './binaries.js';
import { prepareCluster } from './cluster.js';
import { startPostmaster, stopPostmaster } from './postmaster.js';

let home: string;
beforeEach(() => {
  // 0700: as /root is.
  home = mkdtempSync(join(tmpdir(), 'atoll-home-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const kept = join(import.meta.dirname, '../../../../.tools/postgres');
const capabilities = (pid: number) =>
  BigInt(`0x${/^CapEff:\s*(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]}`);
const dacOverride = 1n << 1n;
const dacReadSearch = 1n << 2n;

/** The binaries where whoever cloned the project put them. */
function binariesBelow(folder: string): Binaries {
  const found = findBinaries();
  const root = join(folder, 'native');
  // It takes a fifth of the time of Node's own copy.
  execFileSync('cp', ['-a', found.root, root]);
  return { ...found, root, initdb: join(root, 'bin', 'initdb'), postgres: join(root, 'bin', 'postgres') };
}

/** Makes a cluster, or copies one that is kept, starts it, and gives back what its process is allowed to do. */
async function live(dataDir: string, binaries: Binaries, keptIn?: string): Promise<bigint> {
  mkdirSync(dataDir, { recursive: true });
  const folder = join(dataDir, 'postgres');
  const account = chooseAccount(dataDir, folder, binaries);
  prepareCluster(dataDir, folder, account, binaries, { fast: true, keptIn });
  const { pid } = await startPostmaster({
    folder,
    logFile: join(dataDir, 'log'),
    account,
    binary: binaries.postgres,
    fast: true,
  });
  const effective = process.platform === 'linux' ? capabilities(pid) : 0n;
  await stopPostmaster(pid);
  return effective;
}

describe('the account that PostgreSQL runs as', () => {
  it('reaches data and binaries below folders that are closed to all others, and changes none of their permissions', async () => {
    const project = join(home, 'project');
    const dataDir = join(home, 'data');
    mkdirSync(project, { mode: 0o700 });
    mkdirSync(dataDir, { mode: 0o700 });
    const effective = await live(dataDir, binariesBelow(project));
    expect([home, project, dataDir].map((folder) => [statSync(folder).mode & 0o777, statSync(folder).uid])).toEqual(
      [1, 2, 3].map(() => [0o700, process.getuid?.()]),
    );
    expect([0n, dacReadSearch]).toContain(effective);
  });

  it('runs binaries that a umask of 077 made executable by their owner only', async () => {
    const binaries = binariesBelow(home);
    execFileSync('chmod', ['-R', 'go-rwx', binaries.root]);
    const effective = await live(join(home, 'data'), binaries);
    expect([0n, dacOverride]).toContain(effective);
  });

  it('keeps no capability where it needs none', async () => {
    chmodSync(home, 0o755);
    const dataDir = join(home, 'data');
    mkdirSync(dataDir, { mode: 0o755 });
    // What specs begin with: only the server is looked at.
    expect(await live(dataDir, binariesBelow(home), kept)).toBe(0n);
  });

  it('is never root', () => {
    const account = chooseAccount(home, join(home, 'postgres'), findBinaries());
    expect(Number(runAs(account, 'id', ['-u']).stdout)).toBeGreaterThan(0);
  });

  it('is the owner of the data, where there is data', () => {
    const folder = join(home, 'postgres');
    mkdirSync(folder);
    const owner = process.getuid?.() === 0 ? 12_345 : statSync(folder).uid;
    execFileSync('chown', [`${owner}`, folder]);
    expect(runAs(chooseAccount(home, folder, findBinaries()), 'id', ['-u']).stdout.trim()).toBe(`${owner}`);
  });
});
