import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Binaries } from './binaries.js';

/** Whom PostgreSQL runs as, and how a command is run so. */
export interface Account {
  /** Whom its files belong to; undefined where that is whoever runs this process. */
  owner?: { uid: number; gid: number };
  /** Goes before the command. */
  prefix: string[];
  /** For `spawn`, where there is no command to change the user with. */
  spawnAs: { uid?: number; gid?: number };
}

/**
 * PostgreSQL refuses to run as root, so root runs it as the owner of the data, or as `postgres`, or as `nobody`; no
 * account is made. Where that account cannot reach the binaries or the data, as below /root, no permissions are
 * changed: it keeps one capability of root's, to read (or, where a umask made the binaries executable by their owner
 * only, to use) what is closed to it. SQL gains nothing by that: services log in with a role that is no superuser and
 * so cannot touch files. Throws an Error that says what to do where there is no way.
 */
export function chooseAccount(
  dataDir: string,
  dataFolder: string,
  binaries: Binaries,
  outlivesProcess = false,
): Account {
  const hasSetpriv = spawnSync('setpriv', ['--pdeathsig', 'INT', 'true']).status === 0;
  // When this process is killed outright, the server is told to shut down. Where there is no setpriv, the next start
  // does that.
  const orphanRule = outlivesProcess ? [] : ['--pdeathsig', 'INT'];
  if (process.getuid?.() !== 0)
    return { prefix: hasSetpriv && !outlivesProcess ? ['setpriv', ...orphanRule] : [], spawnAs: {} };

  const owner = findOwner(dataFolder);
  const identity = ['setpriv', ...orphanRule, `--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups'];
  const candidates: Account[] = hasSetpriv
    ? ['', 'dac_read_search', 'dac_override'].map((capability) => ({
        owner,
        prefix: [...identity, ...keep(capability)],
        spawnAs: {},
      }))
    : [{ owner, prefix: [], spawnAs: owner }];
  const account = candidates.find((candidate) => canWork(candidate, dataDir, binaries));
  if (account) return account;
  throw new Error(
    `PostgreSQL does not run as root, and the account with id ${owner.uid} cannot reach both ${dataDir} and ${binaries.root}. ` +
      (hasSetpriv ? 'Let it enter these folders' : 'Install setpriv (package util-linux)') +
      ', or start as an ordinary user, or set DATABASE_URL to a PostgreSQL of your own.',
  );
}

/** Runs a command as that account, to its end. */
export function runAs(account: Account, command: string, args: string[], input = ''): SpawnSyncReturns<string> {
  const [file = command, ...rest] = [...account.prefix, command, ...args];
  return spawnSync(file, rest, { ...account.spawnAs, cwd: '/', env: environment, input, encoding: 'utf8' });
}

/** Nothing of the caller's: PGDATA, PGPORT, LC_* and the like all mean something to PostgreSQL. */
export const environment = { PATH: process.env.PATH, LC_ALL: 'C' };

function keep(capability: string): string[] {
  if (!capability) return [];
  // no_setuid_fixup: access(2), by which PostgreSQL looks for its own files, would otherwise leave the capability out
  // of account.
  return ['--securebits=+no_setuid_fixup', `--inh-caps=-all,+${capability}`, `--ambient-caps=-all,+${capability}`];
}

/** Tried, not computed: modes are not all there is to permissions. */
function canWork(account: Account, dataDir: string, { root, postgres }: Binaries): boolean {
  const needed = 'cd "$1" && test -x "$2" && test -r "$3" && test -r "$4"';
  return (
    runAs(account, '/bin/sh', [
      '-c',
      needed,
      'sh',
      dataDir,
      postgres,
      join(root, 'share', 'postgresql', 'postgres.bki'),
      join(root, 'lib'),
    ]).status === 0
  );
}

function findOwner(dataFolder: string): { uid: number; gid: number } {
  const existing = statSync(dataFolder, { throwIfNoEntry: false });
  if (existing && existing.uid !== 0) return { uid: existing.uid, gid: existing.gid };
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((flag) =>
      Number.parseInt(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout, 10),
    );
    if (uid && gid) return { uid, gid };
  }
  throw new Error(
    'PostgreSQL does not run as root, and this host has no account named postgres or nobody. Start as an ordinary user, or set DATABASE_URL.',
  );
}
