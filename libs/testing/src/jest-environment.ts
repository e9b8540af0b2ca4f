import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';

/**
 * Jest's environment for Node.js, with which a worker compiles each module once, not anew for each spec file. Every spec file still runs its own copy of
 * the module: only what V8 has compiled is kept.
 *
 * Jest compiles CommonJS by `vm.compileFunction`, which binds the result to one context. A `vm.Script` is bound to none: it is kept, and run in the context
 * of each spec file, with the functions that V8 has compiled since. An ES module is bound to its context; its code cache is kept.
 */
type CompileFunction = typeof vm.compileFunction;
type ImportModule = NonNullable<vm.ScriptOptions['importModuleDynamically']>;

interface Compiled {
  readonly source: string;
  readonly script: vm.Script;
  /** That of the spec file that loaded it last: a worker runs one at a time. */
  importModule: ImportModule | undefined;
}

const scripts = new Map<string, Compiled>();
const compileAlone: CompileFunction = vm.compileFunction.bind(vm);

const compileOnce: CompileFunction = (source, params = [], options = {}) => {
  const { filename, parsingContext, importModuleDynamically } = options;
  if (!filename?.includes('/node_modules/') || !parsingContext) return compileAlone(source, params, options);
  const opening = `(function (${params.join(', ')}) {`;
  const key = `${opening}${filename}`;
  let compiled = scripts.get(key);
  if (compiled?.source !== source) {
    compiled = compile(source, opening, filename);
    // What has a syntax error is reported as without this environment.
    if (!compiled) return compileAlone(source, params, options);
    scripts.set(key, compiled);
  }
  compiled.importModule = importModuleDynamically as ImportModule | undefined;
  return compiled.script.runInContext(parsingContext) as ReturnType<CompileFunction>;
};

function compile(source: string, opening: string, filename: string): Compiled | undefined {
  const importModuleDynamically = ((...request: Parameters<Exclude<ImportModule, number>>) => {
    if (typeof compiled.importModule !== 'function') throw new Error(`${filename} was loaded without import().`);
    return compiled.importModule(...request);
  }) as ImportModule;
  let script: vm.Script;
  try {
    script = new vm.Script(`${opening}${source}\n})`, { filename, columnOffset: -opening.length, importModuleDynamically });
  } catch {
    return undefined;
  }
  const compiled: Compiled = { source, script, importModule: undefined };
  return compiled;
}

const codeCaches = new Map<string, { readonly source: string; readonly cachedData: Buffer }>();

/** `createCachedData` is missing from the types of Node.js. */
function codeCacheOf(module: vm.SourceTextModule): Buffer {
  return (module as vm.SourceTextModule & { createCachedData(): Buffer }).createCachedData();
}

class ModuleWithCodeCache extends vm.SourceTextModule {
  constructor(source: string, options: vm.SourceTextModuleOptions = {}) {
    const { identifier } = options;
    const known = identifier === undefined ? undefined : codeCaches.get(identifier);
    const isKnown = known?.source === source;
    super(source, isKnown ? { ...options, cachedData: known.cachedData } : options);
    if (identifier !== undefined && !isKnown) codeCaches.set(identifier, { source, cachedData: codeCacheOf(this) });
  }
}

Object.assign(vm, { compileFunction: compileOnce, SourceTextModule: ModuleWithCodeCache });

export { TestEnvironment as default };
