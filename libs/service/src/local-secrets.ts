import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the processes of one deployment share and nobody else knows. An operator sets them by environment; one machine makes its own. */
export interface LocalSecrets {
  /** Signs the context of every call on the bus. */
  busSecret: string;
  /** Under which API keys are digested: with another pepper every key that was issued is void. */
  keyPepper: string;
}

/** Reads the secrets of a data folder, or makes them at the first start, readable by their owner alone. Never overwrites a file it cannot read. */
export function loadLocalSecrets(dataDir: string): LocalSecrets {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, 'secrets.json');
  const fresh: LocalSecrets = { busSecret: randomBytes(32).toString('base64url'), keyPepper: randomBytes(32).toString('base64url') };
  try {
    writeFileSync(path, JSON.stringify(fresh), { mode: 0o600, flag: 'wx' });
    return fresh;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const kept = JSON.parse(readFileSync(path, 'utf8')) as Partial<LocalSecrets>;
  if (!kept.busSecret || !kept.keyPepper)
    throw new Error(`${path} does not hold the secrets of this data folder; restore it from a backup.`);
  return { busSecret: kept.busSecret, keyPepper: kept.keyPepper };
}
