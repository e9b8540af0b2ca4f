import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { transformFile } from '@swc/core';

/**
 * Compiles the sources to JavaScript under dist, file by file: those that have changed since, or whose output somebody
 * has written over, as `tools/bundle.ts` does with entry points. Where the rules of compiling have changed, or a source
 * has come or gone to which an import may lead, all. The output of sources that are gone is removed.
 */

const recordFile = 'dist/compiled.json';
/** What the output of all sources depends on. */
const rules = ['.swcrc', 'node_modules/@swc/core/package.json', relative('.', import.meta.filename)];

/** Changes whenever a file is written. */
function stampOf(file: string): string {
  const { mtimeMs, size } = statSync(file);
  return `${Math.trunc(mtimeMs)} ${size}`;
}

/** The stamps of a source and of its output, by the path of the source; of `rules`, by that name. */
type Compiled = Record<string, string>;

const { exclude } = JSON.parse(readFileSync('.swcrc', 'utf8')) as { exclude: string[] };
const excluded = exclude.map((pattern) => new RegExp(pattern));
const sources = globSync('{libs,apps,tools}/**/*.ts').filter((file) => !excluded.some((each) => each.test(file)));

const ofSources = createHash('sha256').update(sources.toSorted().join('\n')).digest('hex');
const ofRules = [...rules.map(stampOf), ofSources].join(', ');
const before = readRecord();
const isKnown = before.rules === ofRules;

/** Empty where there is none that is whole. */
function readRecord(): Compiled {
  try {
    return JSON.parse(readFileSync(recordFile, 'utf8')) as Compiled;
  } catch {
    return {};
  }
}

function outputOf(source: string): string {
  return join('dist', source.replace(/\.ts$/, '.js'));
}

/** Returns the path of the source with the stamps. Takes that of the source first, as it may change meanwhile. */
async function compile(source: string): Promise<[string, string]> {
  const output = outputOf(source);
  const ofSource = stampOf(source);
  const stamps = () => `${ofSource}, ${stampOf(output)}`;
  if (isKnown && existsSync(output) && before[source] === stamps()) return [source, stamps()];
  const { code, map = '' } = await transformFile(source, { sourceFileName: relative(dirname(output), source) });
  mkdirSync(dirname(output), { recursive: true });
  writeFileSync(`${output}.map`, map);
  writeFileSync(output, `${code}\n//# sourceMappingURL=${basename(output)}.map`);
  return [source, stamps()];
}

const compiled = Object.fromEntries(await Promise.all(sources.map(compile)));
const gone = Object.keys(before).filter((source) => source !== 'rules' && !(source in compiled));
for (const output of gone.map(outputOf)) for (const file of [output, `${output}.map`]) rmSync(file, { force: true });
mkdirSync('dist', { recursive: true });
writeFileSync(`${recordFile}.new`, JSON.stringify({ rules: ofRules, ...compiled } satisfies Compiled));
renameSync(`${recordFile}.new`, recordFile);
