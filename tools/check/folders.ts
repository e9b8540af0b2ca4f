import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** Which folder imports which, by one file each: `sharing` → `model` → `sharing/gpu-steps.ts`. */
export type FolderImports = ReadonlyMap<string, ReadonlyMap<string, string>>;

const isProof = /(?:\.spec|-fixture)\.tsx?$|(?:^|\/)(?:laws|testing|contract)\//;
const relativeImport = /\bfrom '(\.[^']+)'|\bimport\('(\.[^']+)'\)/g;

/**
 * The imports among the folders of a project, of what ships. They are compared where their paths part: `compat/pools`
 * with `compat/teams`, each with what is in it, and the files of `compat` itself with either. What stands beside the
 * outermost folders puts them together, so it is left out.
 */
export function folderImports(files: readonly { readonly path: string; readonly text: string }[]): FolderImports {
  const imports = new Map<string, Map<string, string>>();
  for (const { path, text } of files.filter((file) => !isProof.test(file.path))) {
    for (const [, first, second] of text.matchAll(relativeImport)) {
      const [from, to] = foldersApart(path, normalize(join(dirname(path), first ?? second ?? '')));
      if (from === undefined || to === undefined || from === to) continue;
      const of = imports.get(from) ?? new Map<string, string>();
      imports.set(from, of.set(to, of.get(to) ?? path));
    }
  }
  return imports;
}

/**
 * The folders of two files up to where they part. Undefined for a file beside the outermost folders, or outside of
 * them.
 */
function foldersApart(one: string, other: string): (string | undefined)[] {
  const [folders, others] = [one.split('/').slice(0, -1), other.split('/').slice(0, -1)];
  const parting = folders.findIndex((folder, at) => folder !== others[at]);
  const depth = 1 + (parting === -1 ? folders.length : parting);
  return [folders, others].map((path) =>
    path.length === 0 || path[0] === '..' ? undefined : path.slice(0, depth).join('/'),
  );
}

/** A shortest circle, as a line that names a file for each of its imports; undefined where all imports go downwards. */
export function circleIn(imports: FolderImports): string | undefined {
  const circles = [...imports.keys()]
    .map((folder) => pathBack(imports, folder))
    .filter((circle) => circle !== undefined);
  const [shortest] = circles.toSorted((one, other) => one.length - other.length);
  return shortest?.map(([folder, file]) => `${folder} (${file})`).join(' → ');
}

type Step = readonly [folder: string, file: string];

/** Breadth first, from a folder back to itself. */
function pathBack(imports: FolderImports, start: string): Step[] | undefined {
  const seen = new Set<string>();
  const queue: { at: string; steps: Step[] }[] = [{ at: start, steps: [] }];
  for (const { at, steps } of queue) {
    for (const [to, file] of imports.get(at) ?? []) {
      const next: Step[] = [...steps, [at, file]];
      if (to === start) return next;
      if (seen.has(to)) continue;
      seen.add(to);
      queue.push({ at: to, steps: next });
    }
  }
  return undefined;
}

if (import.meta.main) {
  for (const project of [...globSync('{apps,libs}/*/src').toSorted(), 'tools']) {
    const files = globSync('**/*.{ts,tsx}', { cwd: project }).map((path) => ({
      path,
      text: readFileSync(join(project, path), 'utf8'),
    }));
    const circle = circleIn(folderImports(files));
    if (circle === undefined) continue;
    console.log(`${project}: folders that import each other: ${circle}`);
    process.exitCode = 1;
  }
}
