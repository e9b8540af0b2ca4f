import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';
import { keepsModules } from './jest-run-modules.ts';
import { noteFailure } from './test-failed.ts';
import { timeoutFactor } from './timeout-factor.ts';

const { ATOLL_TEST_RUN_DIR: runDir } = process.env;
/** Is there once a spec file of the run has loaded what it needs. */
const begun = runDir && join(runDir, 'begun');
const longestWaitMs = 10_000 * timeoutFactor;

type Options = ConstructorParameters<typeof TestEnvironment>;

/**
 * One global object for all spec files of a Jest worker, so that modules one of them has loaded serve the next
 * (`KeptModules`). What a file may leave there goes: false time, who is told of its tests, and changes of
 * `process.env`.
 */
class KeptEnvironment extends TestEnvironment {
  private static kept?: KeptEnvironment;
  private readonly env = { ...process.env };

  constructor(...options: Options) {
    // Jest makes one for each spec file.
    if (KeptEnvironment.kept) return KeptEnvironment.kept;
    const { createContext } = vm;
    // Jest hands its own proxy to Node, and each look at a global such as `Promise` goes through both: a twentieth of
    // what specs take.
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY);
    try {
      super(...options);
    } finally {
      vm.createContext = createContext;
    }
    // Each `expect` takes a stack: of 100 lines, which Jest wants, it takes as long as the rest.
    this.global.Error.stackTraceLimit = 20;
    if (keepsModules(options[0].globalConfig)) KeptEnvironment.kept = this;
  }

  /**
   * The first worker of a run loads what its specs need before the others begin to: they would load the same at once,
   * and the first spec would come later by what all of them take.
   */
  override async setup(): Promise<void> {
    await super.setup();
    process.on('warning', this.noteDeprecation);
    const until = performance.now() + longestWaitMs;
    while (begun && process.env.JEST_WORKER_ID !== '1' && !existsSync(begun) && performance.now() < until)
      await delay(20);
  }

  handleTestEvent({ name }: { name: string }): void {
    noteFailure(this.global, name);
    if (begun && name === 'run_start' && !existsSync(begun)) writeFileSync(begun, '');
  }

  /**
   * Makes a warning of a deprecated use an error of the running spec. Specs have a `process` that Node does not warn.
   */
  private readonly noteDeprecation = (warning: Error): void => {
    const { [Symbol.for('atoll.error-log')]: errorLog } = this.global as {
      [key: symbol]: { lines: string[] } | undefined;
    };
    if (warning.name === 'DeprecationWarning') errorLog?.lines.push(String(warning));
  };

  override async teardown(): Promise<void> {
    process.off('warning', this.noteDeprecation);
    if (KeptEnvironment.kept !== this) return super.teardown();
    this.fakeTimersModern?.useRealTimers();
    // Jest would add those of the next file to them, and each test would be told to all, and reported as often.
    Reflect.deleteProperty(this.global, Symbol.for('EVENT_HANDLERS'));
    const { env } = this.global.process;
    for (const name of Object.keys(env)) if (!(name in this.env)) Reflect.deleteProperty(env, name);
    Object.assign(env, this.env);
  }
}

export { KeptEnvironment as default };
