import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** One value of each axis is what the boundary rule of oxlint.config.ts stands on. */
const axes = {
  type: ['app', 'contract', 'lib', 'testing'],
  platform: ['any', 'node', 'web'],
};

export interface Project {
  /** `libs/rpc` */
  root: string;
  name?: string;
  tags?: string[];
  hasTsconfig: boolean;
}

/** What is wrong with a project's own description. */
export function projectProblems({ root, name, tags = [], hasTsconfig }: Project): string[] {
  const folder = root.split('/').at(-1) ?? root;
  const scope = root.startsWith('apps/') ? folder : 'house';
  const allowed: Record<string, string[]> = { ...axes, scope: [scope] };
  const problems = Object.entries(allowed).flatMap(([axis, values]) => {
    const own = tags.filter((tag) => tag.startsWith(`${axis}:`)).map((tag) => tag.slice(axis.length + 1));
    return own.length === 1 && values.includes(own[0] ?? '')
      ? []
      : [`needs one tag of ${values.map((value) => `${axis}:${value}`).join(', ')}`];
  });
  if (tags.length > 3) problems.push('has a tag beyond type, scope and platform');
  if (name !== folder) problems.push(`must be named ${folder} in project.json`);
  if (!hasTsconfig) problems.push('has no tsconfig.json');
  return problems.map((problem) => `${root}: ${problem}`);
}

/** The aliases, in tsconfig.base.json and in .swcrc, must be exactly the libs that exist. */
export function aliasProblems(libs: string[], aliases: Record<string, Record<string, string[]>>): string[] {
  const expected = Object.fromEntries(libs.flatMap(doorsOf));
  return Object.entries(aliases).flatMap(([file, paths]) =>
    [...new Set([...Object.keys(expected), ...Object.keys(paths)])]
      .filter((alias) => String(expected[alias]) !== String(paths[alias]))
      .map(
        (alias) =>
          `${file}: ${alias} is ${String(paths[alias] ?? 'missing')}, expected ${String(expected[alias] ?? 'nothing: no such lib')}`,
      ),
  );
}

/** Contracts have a door for what all services have, and one for each service. */
function doorsOf(lib: string): [alias: string, files: string[]][] {
  const door: [string, string[]] = [`@atoll/${lib}`, [`./libs/${lib}/src/index.ts`]];
  return lib === 'contracts' ? [door, ['@atoll/contracts/*', ['./libs/contracts/src/*/index.ts']]] : [door];
}

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(path, 'utf8')) as T;
}

function foldersIn(parent: string): string[] {
  return readdirSync(parent, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

function problems(): string[] {
  const roots = [
    'tools',
    ...['apps', 'libs', 'tools'].flatMap((parent) => foldersIn(parent).map((folder) => `${parent}/${folder}`)),
  ];
  const projects = roots.map((root) => {
    const description = existsSync(`${root}/project.json`)
      ? readJson<Omit<Project, 'root'>>(`${root}/project.json`)
      : {};
    return { ...description, root, hasTsconfig: existsSync(`${root}/tsconfig.json`) };
  });
  const typescript = readJson<{ compilerOptions: { paths: Record<string, string[]> } }>('tsconfig.base.json');
  const swc = readJson<{ jsc: { paths: Record<string, string[]> } }>('.swcrc');
  return [
    ...projects.flatMap(projectProblems),
    ...aliasProblems(foldersIn('libs'), {
      'tsconfig.base.json': typescript.compilerOptions.paths,
      '.swcrc': swc.jsc.paths,
    }),
  ];
}

if (import.meta.main) {
  const found = problems();
  for (const problem of found) console.log(problem);
  process.exitCode = found.length ? 1 : 0;
}
