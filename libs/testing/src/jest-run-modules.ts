import { isBuiltin } from 'node:module';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import jestRuntime from 'jest-runtime';

// Its types are those of its CommonJS.
const Runtime = jestRuntime as unknown as typeof jestRuntime.default;

/** What of Jest's runtime is put back between two spec files. Jest has no interface for it: its version is pinned. */
interface Parts {
  readonly _config: { readonly rootDir: string };
  registries: {
    esModuleRegistry: Map<string, { status?: string }>;
    moduleRegistry: Map<string, { loaded?: boolean }>;
    internalModuleRegistry: Map<string, unknown>;
    requireCacheProxy: object;
  };
  mockState: { clear(): void };
  testMainModule: { reset(): void };
  jestGlobals: { clearJestObjectCache(): void; cachedEnvGlobals: unknown };
  testState: { state: 'loading' };
  _testPath: string;
  executor: { testPath: string };
  esmLoader: { testPath: string };
}

/** `ATOLL_TEST_ISOLATED=1` gives each spec file modules of its own. So does watching, in which modules change. */
export function keepsModules({ watch, watchAll }: { watch: boolean; watchAll: boolean }): boolean {
  return process.env.ATOLL_TEST_ISOLATED !== '1' && !watch && !watchAll;
}

/**
 * Of this repository, what the build takes: specs and fixtures hold what belongs to one spec file, such as its
 * `expect`.
 */
const ownKept = /^(libs\/(?!testing\/)|apps\/(?!e2e\/)).*(?<!\.spec|-spec|-fixture)\.ts$/;

/**
 * Whether a module may serve several spec files. `key`: the path or the URL of a file, or the name of a module of Node.
 */
export function isKept(key: string, rootDir: string): boolean {
  if (isBuiltin(key)) return true;
  const path = key.startsWith('file:') ? fileURLToPath(key) : key;
  return path.includes(`${sep}node_modules${sep}`) || ownKept.test(relative(rootDir, path).replaceAll(sep, '/'));
}

type Options = ConstructorParameters<typeof Runtime>;

/**
 * Jest's runtime, of which a worker has one for all its spec files: libraries and product are loaded once, specs and
 * fixtures anew for each file. To load everything for each file took half of the CPU time of all specs.
 */
class KeptModules extends Runtime {
  private static kept?: KeptModules;

  constructor(...options: Options) {
    const [, , , , , , testPath, globalConfig] = options;
    // Jest makes one for each spec file.
    if (KeptModules.kept) return KeptModules.kept.begin(testPath);
    super(...options);
    if (!keepsModules(globalConfig)) return;
    KeptModules.kept = this;
    // Fastify reads all of `require.cache` for the name of each plugin, and it has grown long.
    this.parts.registries.requireCacheProxy = {};
  }

  private get parts(): Parts {
    return this as unknown as Parts;
  }

  private begin(testPath: string): this {
    const { executor, esmLoader, testState } = this.parts;
    this.parts._testPath = executor.testPath = esmLoader.testPath = testPath;
    testState.state = 'loading';
    return this;
  }

  override teardown(): void {
    if (KeptModules.kept !== this) {
      super.teardown();
      return;
    }
    this.restoreAllMocks();
    const { registries, mockState, testMainModule, jestGlobals, _config } = this.parts;
    const { esModuleRegistry: esm, moduleRegistry: commonJs, internalModuleRegistry: internal } = registries;
    for (const [key, { status }] of esm) if (status !== 'evaluated' || !isKept(key, _config.rootDir)) esm.delete(key);
    for (const [key, { loaded }] of commonJs) if (!loaded || !isKept(key, _config.rootDir)) commonJs.delete(key);
    // Of Jest's own modules this one holds a file's tests and hooks.
    for (const key of internal.keys()) if (key.includes('jest-circus')) internal.delete(key);
    mockState.clear();
    testMainModule.reset();
    jestGlobals.clearJestObjectCache();
    jestGlobals.cachedEnvGlobals = undefined;
  }
}

export { KeptModules as default };
