import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

/** The release that runs: see `readVersion`. */
export const version = readVersion(import.meta.dirname);

/**
 * `version` of the project's package.json, the nearest one above this folder, and where the folder is part of a build,
 * the commit that was built, as semver's build metadata: `0.1.0+94c93db1`. Without it where the build knew no commit.
 */
export function readVersion(folder: string): string {
  const root = projectOf(folder);
  if (root === undefined) return 'unknown';
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version?: string };
  const commit = folder.startsWith(join(root, 'dist') + sep) ? commitOf(join(root, 'dist/commit')) : '';
  return (manifest.version ?? 'unknown') + (commit && `+${commit}`);
}

function projectOf(folder: string): string | undefined {
  if (existsSync(join(folder, 'package.json'))) return folder;
  return folder === dirname(folder) ? undefined : projectOf(dirname(folder));
}

function commitOf(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}
