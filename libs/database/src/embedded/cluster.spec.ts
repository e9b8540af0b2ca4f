import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { chooseAccount } from './account.js';
import { findBinaries } from './binaries.js';
import { prepareCluster, type Cluster } from './cluster.js';
import { startEmbeddedPostgres } from './embedded-postgres.js';

/** A folder for what initdb makes, once for several specs: it takes longer than all else. */
let made: string;
beforeAll(() => {
  made = mkdtempSync(join(tmpdir(), 'atoll-initdb-'));
  chmodSync(made, 0o777);
});
afterAll(() => rmSync(made, { recursive: true, force: true }));

let home: string;
let keptIn: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'atoll-clusters-'));
  // Where this runs as root, PostgreSQL runs as another user.
  chmodSync(home, 0o755);
  keptIn = join(home, 'kept');
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** An initdb that runs once, and makes copies then. */
function initdbOnce(real: string): string {
  const file = join(home, 'initdb');
  writeFileSync(
    file,
    `#!/bin/sh
    [ -d ${made}/data ] || ${real} "$@" --pgdata=${made}/data || exit 1
    cp -a ${made}/data/. "\${1#--pgdata=}"`,
  );
  chmodSync(file, 0o755);
  return file;
}

/** Makes a data folder, with an initdb that is not there unless it may be run. */
function make(name: string, mayRunInitdb: boolean): Cluster {
  const dataDir = join(home, name);
  const folder = join(dataDir, 'postgres');
  mkdirSync(dataDir, { recursive: true });
  const binaries = findBinaries();
  const account = chooseAccount(dataDir, folder, binaries);
  const initdb = mayRunInitdb ? initdbOnce(binaries.initdb) : join(home, 'no-initdb');
  return prepareCluster(dataDir, folder, account, { ...binaries, initdb }, { fast: true, keptIn });
}

async function ask(name: string, ...statements: string[]): Promise<unknown[]> {
  const server = await startEmbeddedPostgres({ dataDir: join(home, name), fast: true });
  const client = new pg.Client(server.url);
  await client.connect();
  try {
    let rows: unknown[] = [];
    for (const sql of statements) ({ rows } = await client.query<object>(sql));
    return rows;
  } finally {
    await client.end();
    await server.stop();
  }
}

it('a data folder that is kept is copied, with its password and without initdb, and nothing of it is shared', async () => {
  const { password } = make('first', true);
  expect(await ask('first', 'CREATE TABLE mine (id int)', 'SELECT current_user AS who')).toEqual([{ who: 'atoll' }]);
  expect(make('second', false).password).toBe(password);
  expect(await ask('second', "SELECT to_regclass('mine') AS mine, current_user AS who")).toEqual([
    { mine: null, who: 'atoll' },
  ]);
  expect(readdirSync(keptIn)).toHaveLength(1);
  const [kept = ''] = readdirSync(keptIn);
  expect(statSync(join(keptIn, kept)).mode & 0o777).toBe(0o700);
});

it('where nothing can be kept, each data folder is made', async () => {
  writeFileSync(keptIn, '');
  make('first', true);
  expect(() => make('second', false)).toThrow('could not create its data folder');
  expect(await ask('first', 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('a copy that cannot get its name leaves nothing behind, and the data folder is there all the same', async () => {
  make('first', true);
  const [name = ''] = readdirSync(keptIn);
  rmSync(join(keptIn, name), { recursive: true });
  // Is not there when it is looked for, and in the way later, as where two processes keep theirs at once.
  symlinkSync('nowhere', join(keptIn, name));
  make('second', true);
  expect(readdirSync(keptIn)).toEqual([name]);
  expect(await ask('second', 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});
