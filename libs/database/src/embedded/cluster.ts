import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { runAs, type Account } from './account.js';
import type { Binaries } from './binaries.js';

/**
 * The role that services log in with, and the database that it owns. No superuser: SQL cannot reach files or programs.
 */
export const roleName = 'atoll';

export function passwordFileOf(dataDir: string): string {
  return join(dataDir, 'postgres.password');
}

export interface Cluster {
  /** PostgreSQL's own data folder. */
  folder: string;
  password: string;
}

/** How a data folder is made that is not there yet. */
export interface Making {
  /** Without waiting for the disk. */
  readonly fast: boolean;
  /**
   * A folder that keeps what the first data folder began with, its password included: all others are copies of it. For
   * specs, whose data nobody will miss.
   */
  readonly keptIn?: string | undefined;
}

/**
 * Makes the data folder if there is none yet, and the role and the database in it. It appears whole, by a rename at the
 * end: a first start that was cut off leaves nothing behind that looks like data.
 */
export function prepareCluster(
  dataDir: string,
  folder: string,
  account: Account,
  binaries: Binaries,
  making: Making,
): Cluster {
  const passwordFile = passwordFileOf(dataDir);
  const exists = existsSync(join(folder, 'PG_VERSION'));
  if (exists) requireSameVersion(folder, binaries);
  if (exists && existsSync(passwordFile)) return { folder, password: readFileSync(passwordFile, 'utf8').trim() };

  const password = randomBytes(24).toString('hex');
  if (exists) {
    // The file was lost: the data is worth more.
    setUp(folder, account, binaries, `ALTER ROLE ${roleName} PASSWORD '${password}';\n`);
    writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
    return { folder, password };
  }
  const draft = `${folder}.new`;
  rmSync(draft, { recursive: true, force: true });
  rmSync(passwordFile, { force: true });
  const kept = making.keptIn === undefined ? undefined : join(making.keptIn, nameOf(account, binaries));
  if (kept !== undefined && existsSync(kept)) {
    copyTree(join(kept, 'postgres'), draft);
    copyFileSync(passwordFileOf(kept), passwordFile);
  } else {
    mkdirSync(draft, { mode: 0o700 });
    if (account.owner) chownSync(draft, account.owner.uid, account.owner.gid);
    initialise(draft, account, binaries, making.fast);
    setUp(draft, account, binaries, firstSql(password));
    writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
    if (kept !== undefined) keep(draft, passwordFile, kept);
  }
  renameSync(draft, folder);
  return { folder, password: readFileSync(passwordFile, 'utf8').trim() };
}

/** Changes with all that a data folder begins with. */
function nameOf({ owner }: Account, { majorVersion }: Binaries): string {
  const rules = JSON.stringify([owner, initdbOptions, whoMayLogIn, firstSql('')]);
  return `${majorVersion}-${createHash('sha256').update(rules).digest('hex').slice(0, 16)}`;
}

/** It appears whole too. Where it cannot be kept, the next data folder is made as this one was. */
function keep(folder: string, passwordFile: string, kept: string): void {
  const draft = `${kept}.${process.pid}`;
  try {
    mkdirSync(draft, { recursive: true, mode: 0o700 });
    copyTree(folder, join(draft, 'postgres'));
    copyFileSync(passwordFile, passwordFileOf(draft));
    // After a power cut the name could otherwise stand for files that are empty, and no spec would start any more.
    execFileSync('sync', { stdio: 'pipe' });
    renameSync(draft, kept);
  } catch {
    // Another process has kept one meanwhile, or nothing can be written there.
    rmSync(draft, { recursive: true, force: true });
  }
}

/** With its owners, which Node's own copy would change. */
function copyTree(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to], { stdio: 'pipe' });
}

const initdbOptions = [
  '--username=postgres',
  '--auth=reject',
  '--encoding=UTF8',
  // One sort order on every machine: by code point, whatever its C library.
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--no-instructions',
];

const whoMayLogIn = 'host all all 127.0.0.1/32 scram-sha-256\n';

const firstSql = (password: string): string =>
  `CREATE ROLE ${roleName} LOGIN CREATEDB PASSWORD '${password}';\nCREATE DATABASE ${roleName} OWNER ${roleName} STRATEGY file_copy;\n`;

function initialise(folder: string, account: Account, binaries: Binaries, fast: boolean): void {
  const options = [`--pgdata=${folder}`, ...initdbOptions, ...(fast ? ['--no-sync'] : [])];
  const { status, stderr, error } = runAs(account, binaries.initdb, options);
  if (status !== 0)
    throw new Error(`PostgreSQL could not create its data folder ${folder}: ${stderr || String(error)}`);
  writeFileSync(join(folder, 'pg_hba.conf'), whoMayLogIn);
}

/** A password of 192 random bits is not found by trying: to stretch it would only make each connection wait. */
const settings = ['log_checkpoints=off', 'scram_iterations=1'].flatMap((setting) => ['-c', setting]);

/** Single-user mode: PostgreSQL's superuser has no password, so nobody can log in as it. */
function setUp(folder: string, account: Account, binaries: Binaries, sql: string): void {
  const { status, stderr } = runAs(
    account,
    binaries.postgres,
    ['--single', '-D', folder, ...settings, 'template1'],
    sql,
  );
  if (status !== 0 || /^.*(ERROR|FATAL|PANIC):/m.test(stderr))
    throw new Error(`PostgreSQL could not set up its database: ${stderr}`);
}

function requireSameVersion(folder: string, { majorVersion }: Binaries): void {
  const version = readFileSync(join(folder, 'PG_VERSION'), 'utf8').trim();
  if (version === majorVersion) return;
  throw new Error(
    `The data in ${folder} was written by PostgreSQL ${version}; the installed PostgreSQL ${majorVersion} cannot read it. ` +
      'Dump it with the older version and load it into the newer one.',
  );
}
