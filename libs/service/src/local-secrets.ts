import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '@atoll/errors';
import { Sealer } from '@atoll/seal';

/**
 * Secrets that all processes of one deployment share. An operator sets them as environment variables; on one machine
 * they are generated.
 */
export interface LocalSecrets {
  /** Signs the context of every call on the bus. */
  busSecret: string;
  /** Under which API keys are digested: with another pepper every key that was issued is void. */
  keyPepper: string;
  /** `ATOLL_SEAL_KEYS`: what secrets in the database are encrypted under. */
  sealKeys: string;
}

/** Secrets that nobody has used before. */
export function newLocalSecrets(): LocalSecrets {
  const random = () => randomBytes(32).toString('base64url');
  return { busSecret: random(), keyPepper: random(), sealKeys: Sealer.createKeys() };
}

/**
 * The environment of this process, in which an empty variable counts as absent. Secrets that it lacks are those given,
 * under the names of their variables.
 */
export function environmentWith(secrets?: LocalSecrets): NodeJS.ProcessEnv {
  return {
    ...(secrets && {
      ATOLL_BUS_SECRET: secrets.busSecret,
      ATOLL_KEY_PEPPER: secrets.keyPepper,
      ATOLL_SEAL_KEYS: secrets.sealKeys,
    }),
    ...Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== '')),
  };
}

/** Creates the data folder, or one in it, readable by its owner alone, where it is missing. */
export function makeDataFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw dataFolderFault(error);
  }
}

/** What the system says of the data folder, with the variable that names it. */
export function dataFolderFault(error: unknown): Error {
  return new Error(`ATOLL_DATA_DIR cannot be used: ${messageOf(error)}`, { cause: error });
}

/**
 * Reads the secrets of a data folder, or makes them at the first start, readable by their owner alone. A secret that an
 * earlier release did not have yet is added. Never overwrites a file it cannot read.
 */
export function loadLocalSecrets(dataDir: string): LocalSecrets {
  makeDataFolder(dataDir);
  const path = join(dataDir, 'secrets.json');
  if (!existsSync(path)) make(path, newLocalSecrets());
  const { busSecret, keyPepper, sealKeys } = read(path) ?? {};
  if (!busSecret || !keyPepper)
    throw new Error(`${path} does not hold the secrets of this data folder; restore it from a backup.`);
  if (sealKeys) return { busSecret, keyPepper, sealKeys };
  const completed: LocalSecrets = { busSecret, keyPepper, sealKeys: Sealer.createKeys() };
  write(`${path}.new`, completed);
  renameSync(`${path}.new`, path);
  return completed;
}

/** Whole or not at all, whenever the power goes. Where another process was quicker, its file stays. */
function make(path: string, secrets: LocalSecrets): void {
  const draft = `${path}.${process.pid}`;
  write(draft, secrets);
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft);
  }
}

function write(path: string, secrets: LocalSecrets): void {
  writeFileSync(path, JSON.stringify(secrets), { mode: 0o600, flush: true });
}

/** Undefined where the file holds no JSON object, as where it was cut off. */
function read(path: string): Partial<LocalSecrets> | undefined {
  const text = readFileSync(path, 'utf8');
  try {
    return (JSON.parse(text) as Partial<LocalSecrets> | null) ?? undefined;
  } catch {
    return undefined;
  }
}
