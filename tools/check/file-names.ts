import { globSync } from 'node:fs';

const words = '[a-z0-9]+(?:-[a-z0-9]+)*';
const suffixes = ['controller', 'service', 'module', 'entity', 'machine', 'errors'];
const source = new RegExp(`^${words}(?:\\.(?:${suffixes.join('|')}))?(?:\\.(?:spec|e2e-spec))?$`);
const configuration = /^(jest|knip|oxlint|vite)\.config$/;
/** Names that say nothing, and so end up holding everything. */
const junk = /^(?:[a-z0-9-]+-)?(?:common|core|utils?|helpers?)$|^shared$/;

/** What is wrong with the path of a source file, relative to the project's root. */
export function nameProblems(path: string): string[] {
  const folders = path.split('/');
  const file = (folders.pop() ?? '').replace(/\.tsx?$/, '');
  const [stem = ''] = file.split('.');
  const problems: string[] = [];
  if (!source.test(file) && !configuration.test(file))
    problems.push(`is not kebab-case, or has a suffix beyond .${suffixes.join(' .')} .spec .e2e-spec`);
  for (const folder of folders)
    if (!new RegExp(`^${words}$`).test(folder)) problems.push(`the folder ${folder} is not kebab-case`);
  for (const name of [...folders, stem])
    if (junk.test(name)) problems.push(`${name} says nothing: name it by what it does`);
  if (stem === 'index' && !/^libs\/(?:[^/]+\/src|contracts\/src\/[^/]+)\/index\.ts$/.test(path))
    problems.push('index.ts is the one door of a lib: libs/<lib>/src/index.ts, or of the contracts of a service');
  return problems.map((problem) => `${path}: ${problem}`);
}

if (import.meta.main) {
  const found = globSync('{apps,libs,tools}/**/*.{ts,tsx}').sort().flatMap(nameProblems);
  for (const problem of found) console.log(problem);
  process.exitCode = found.length ? 1 : 0;
}
