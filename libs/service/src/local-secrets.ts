import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
 * Reads the secrets of a data folder, or makes them at the first start, readable by their owner alone. A secret that an
 * earlier release did not have yet is added. Never overwrites a file it cannot read.
 */
export function loadLocalSecrets(dataDir: string): LocalSecrets {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, 'secrets.json');
  const fresh = newLocalSecrets();
  try {
    writeFileSync(path, JSON.stringify(fresh), { mode: 0o600, flag: 'wx' });
    return fresh;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const { busSecret, keyPepper, sealKeys } = JSON.parse(readFileSync(path, 'utf8')) as Partial<LocalSecrets>;
  if (!busSecret || !keyPepper)
    throw new Error(`${path} does not hold the secrets of this data folder; restore it from a backup.`);
  if (sealKeys) return { busSecret, keyPepper, sealKeys };
  const completed: LocalSecrets = { busSecret, keyPepper, sealKeys: fresh.sealKeys };
  writeFileSync(`${path}.new`, JSON.stringify(completed), { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return completed;
}
