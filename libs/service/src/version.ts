import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The release that runs: `version` of the project's package.json, the nearest one above this file. */
export const version = readVersion(import.meta.dirname);

function readVersion(folder: string): string {
  const file = join(folder, 'package.json');
  if (!existsSync(file)) return folder === dirname(folder) ? 'unknown' : readVersion(dirname(folder));
  return (JSON.parse(readFileSync(file, 'utf8')) as { version?: string }).version ?? 'unknown';
}
