import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { run } from './run.ts';

interface Made {
  /** What is made. */
  output: string;
  /** What it is made of. */
  inputs: readonly string[];
  make: () => Promise<void>;
}

const made: readonly Made[] = [
  {
    output: 'dist/apps/console/web/index.html',
    inputs: [
      'apps/console/**/*.{ts,tsx,css,html,json,svg}',
      'libs/{gpu,service-names,session-tab}/src/*.ts',
      'package-lock.json',
    ],
    make: async () => {
      const { build } = await import('vite');
      await build({ root: 'apps/console', configFile: 'apps/console/vite.config.ts', logLevel: 'warn' });
    },
  },
  {
    // For the compiler and editors alone; see tools/console-types.ts.
    output: 'apps/console/src/api/generated/openapi.ts',
    inputs: ['libs/contracts/src/**/*.ts', 'libs/errors/src/*.ts', 'apps/gateway/src/**/*.ts', 'package-lock.json'],
    make: async () => {
      const { ok } = await run('node dist/tools/console-types.js');
      if (!ok) throw new Error('The types of the console cannot be generated.');
    },
  },
];

/** Changes with the names and the contents of the files, so that a copy of the repository finds what was made of it. */
function stampOf(inputs: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of globSync(inputs, { exclude: ['**/generated/**'] }).toSorted()) {
    const content = readFileSync(file);
    hash.update(`${file} ${content.length}\n`).update(content);
  }
  return hash.digest('hex');
}

/**
 * Builds the console into `dist/apps/console/web`, and the types of the API for it, each unless what is there was made
 * of these same files.
 */
for (const { output, inputs, make } of made) {
  const stampFile = `dist/apps/console/${createHash('sha256').update(output).digest('hex').slice(0, 8)}.stamp`;
  const stamp = stampOf(inputs);
  if (existsSync(output) && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) continue;
  await make();
  mkdirSync('dist/apps/console', { recursive: true });
  writeFileSync(stampFile, stamp);
}
