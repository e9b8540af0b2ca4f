import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** Which folder imports which, by one file each: `sharing` → `model` → `gpu-steps.ts`. */
export type FolderImports = ReadonlyMap<string, ReadonlyMap<string, string>>;

const isProof = /(?:\.spec|-fixture)\.tsx?$|(?:^|\/)(?:laws|testing|contract)\//;
const relativeImport = /\bfrom '(\.[^']+)'|\bimport\('(\.[^']+)'\)/g;

/**
 * The imports among the folders of a project, of what ships. What stands beside the folders puts them together, so it
 * is left out.
 */
export function folderImports(files: readonly { readonly path: string; readonly text: string }[]): FolderImports {
  const imports = new Map<string, Map<string, string>>();
  for (const { path, text } of files.filter((file) => !isProof.test(file.path))) {
    const from = folderOf(path);
    for (const [, first, second] of text.matchAll(relativeImport)) {
      const to = folderOf(normalize(join(dirname(path), first ?? second ?? '')));
      if (from === undefined || to === undefined || from === to) continue;
      const of = imports.get(from) ?? new Map<string, string>();
      imports.set(from, of.set(to, of.get(to) ?? path));
    }
  }
  return imports;
}

function folderOf(path: string): string | undefined {
  const [folder, ...rest] = path.split('/');
  return rest.length > 0 ? folder : undefined;
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
  for (const project of globSync('{apps,libs}/*/src').toSorted()) {
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
