import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** An entry of Vite's manifest. */
export interface Chunk {
  file: string;
  isEntry?: boolean;
  isDynamicEntry?: boolean;
  imports?: readonly string[];
}

export type Manifest = Readonly<Record<string, Chunk>>;

/**
 * Kilobytes (1024 bytes) of script, compressed by gzip: what a browser loads before the first page works, and with a
 * page after it.
 */
export const budgets = { firstLoad: 200, page: 40, terminal: 90 } as const;

/** What a browser loads for an entry: its chunk and all that it imports statically. */
export function closureOf(manifest: Manifest, entry: string, found = new Set<string>()): Set<string> {
  if (found.has(entry)) return found;
  found.add(entry);
  for (const next of manifest[entry]?.imports ?? []) closureOf(manifest, next, found);
  return found;
}

export interface Load {
  name: string;
  kilobytes: number;
  budget: number;
}

/** What is loaded first, and what each page loads besides. `sizeOf` gives the compressed bytes of a file. */
export function loadsOf(manifest: Manifest, sizeOf: (file: string) => number): Load[] {
  const names = Object.keys(manifest);
  const first = new Set(
    names.filter((name) => manifest[name]?.isEntry).flatMap((name) => [...closureOf(manifest, name)]),
  );
  const kilobytes = (chunks: Iterable<string>) =>
    [...chunks].reduce((all, name) => {
      const file = manifest[name]?.file ?? '';
      return all + (file.endsWith('.js') ? sizeOf(file) / 1024 : 0);
    }, 0);
  const pages = names
    .filter((name) => manifest[name]?.isDynamicEntry)
    .map((name) => ({
      name,
      kilobytes: kilobytes([...closureOf(manifest, name)].filter((chunk) => !first.has(chunk))),
      budget: name.includes('terminal') ? budgets.terminal : budgets.page,
    }));
  return [{ name: 'first load', kilobytes: kilobytes(first), budget: budgets.firstLoad }, ...pages];
}

if (import.meta.main) {
  const folder = 'dist/apps/console/web';
  const manifestFile = join(folder, '.vite/manifest.json');
  if (!existsSync(manifestFile)) throw new Error('The console is not built: npm run build');
  const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as Manifest;
  const loads = loadsOf(manifest, (file) => gzipSync(readFileSync(join(folder, file)), { level: 9 }).length);
  for (const { name, kilobytes, budget } of loads) {
    const isOver = kilobytes > budget;
    if (isOver) process.exitCode = 1;
    console.log(`${isOver ? 'TOO LARGE ' : ''}${name}: ${kilobytes.toFixed(1)} KB of ${budget}`);
  }
}
