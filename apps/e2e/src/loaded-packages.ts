import { readFileSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

/** The package that a module under node_modules belongs to. */
const packageOf = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/;

/**
 * What a process needs in its environment to write into a file, as it ends, the packages that it has loaded from
 * node_modules, and undici where it has loaded Node's own.
 */
export function tellingLoadedPackages(file: string): Record<string, string> {
  return { NODE_OPTIONS: `--import ${import.meta.url}`, ATOLL_E2E_LOADED_PACKAGES: file };
}

export function loadedPackages(file: string): string[] {
  return JSON.parse(readFileSync(file, 'utf8')) as string[];
}

const { ATOLL_E2E_LOADED_PACKAGES: file } = process.env;
if (file) {
  const loaded = new Set<string>();
  registerHooks({
    load: (url, context, next) => {
      const [, name] = packageOf.exec(url) ?? [];
      if (name) loaded.add(name);
      return next(url, context);
    },
  });
  process.once('exit', () => {
    const { moduleLoadList } = process as typeof process & { moduleLoadList: string[] };
    if (moduleLoadList.some((name) => name.endsWith('/undici'))) loaded.add('undici');
    writeFileSync(file, JSON.stringify([...loaded]));
  });
}
