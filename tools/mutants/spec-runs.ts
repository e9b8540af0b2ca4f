import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type { TestPostgres } from '@atoll/testing';
import pg from 'pg';
import type { Mutation } from './mutations.js';
import { withProbes } from './probes.js';
import type { SpecResult } from './reporter.js';

/** A spec that starts another process may run there what no probe sees. */
const startsProcesses = /spawnTypescript/;
/**
 * How much longer than the slowest of its specs took without it a mutant may end none, before it is taken for one that
 * hangs.
 */
const patience = { atLeastMs: 60_000, times: 4 };

const lookMs = 1_000;

export type Verdict = { readonly lives: true; readonly specs: number } | { readonly lives: false; readonly by: string };

/** Runs Jest in a copy of the repository, and knows which spec files run which function. */
export class SpecRuns {
  /** `path:probe` → the spec files that run it. */
  private readonly runBy = new Map<string, Set<string>>();
  private readonly tookMs = new Map<string, number>();
  private readonly folder = mkdtempSync(join(tmpdir(), 'atoll-mutants-run-'));
  /** The process group of the specs that run. */
  private running: number | undefined;

  constructor(
    private readonly copy: string,
    private readonly postgres: TestPostgres,
  ) {
    // The specs share this server and its templates: see `createDatabaseFrom`.
    mkdirSync(join(this.folder, 'postgres'));
    writeFileSync(join(this.folder, 'postgres', 'url'), postgres.url);
  }

  end(): void {
    endGroup(this.running);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /**
   * Runs the specs that reach the files of these mutants once as they are, and notes what each runs. Returns those that
   * fail.
   */
  async learn(mutants: readonly Mutation[]): Promise<string[]> {
    const probes = Map.groupBy(mutants, ({ path }) => path);
    const roots = [...new Set([...probes.keys()].map(projectOf))];
    const before = new Map([...probes.keys()].map((path) => [path, readFileSync(join(this.copy, path), 'utf8')]));
    const ran = join(this.folder, 'ran');
    writeFileSync(ran, '');
    for (const [path, text] of before) {
      const all = probes.get(path)?.map(({ probe }) => probe) ?? [];
      writeFileSync(join(this.copy, path), withProbes(path, text, all));
    }
    const setUp = ['libs/testing/src/jest-error-log.ts', 'tools/mutants/recorder.ts'].map((path) =>
      join(this.copy, path),
    );
    const which = ['--roots', ...roots.map((root) => join(this.copy, root)), '--findRelatedTests', ...probes.keys()];
    // Isolated: what a module does while it is loaded is of each spec file that loads it.
    const results = await this.jest(['--setupFilesAfterEnv', ...setUp, ...which], {
      ATOLL_MUTANTS_RAN: ran,
      ATOLL_TEST_ISOLATED: '1',
    });
    for (const [path, text] of before) writeFileSync(join(this.copy, path), text);
    const passed = new Map(
      results.flatMap(({ path, tookMs, failed }) => (failed === undefined ? [[path, tookMs]] : [])),
    );
    for (const [spec, tookMs] of passed) {
      this.tookMs.set(spec, tookMs);
      if (!startsProcesses.test(readFileSync(spec, 'utf8'))) continue;
      for (const { path, probe } of mutants) this.note(`${path}:${probe}`, spec);
    }
    for (const line of readFileSync(ran, 'utf8').split('\n')) {
      const [spec = '', of = ''] = line.split('\t');
      if (passed.has(spec)) this.note(of, spec);
    }
    return results
      .map(({ path }) => path)
      .filter((spec) => !passed.has(spec))
      .map((spec) => relative(this.copy, spec));
  }

  /**
   * Runs the specs of the same project that run the function of a mutant: those beside it first, and quick ones before
   * slow ones.
   */
  async judge({ path, probe, text }: Mutation): Promise<Verdict> {
    const beside = (spec: string) => (dirname(relative(this.copy, spec)) === dirname(path) ? 0 : 1);
    const tookMs = (spec: string) => this.tookMs.get(spec) ?? 0;
    const specs = [...(this.runBy.get(`${path}:${probe}`) ?? [])]
      .filter((spec) => projectOf(relative(this.copy, spec)) === projectOf(path))
      .toSorted((one, other) => beside(one) - beside(other) || tookMs(one) - tookMs(other));
    if (specs.length === 0) return { lives: true, specs: 0 };
    const file = join(this.copy, path);
    const before = readFileSync(file, 'utf8');
    writeFileSync(file, text);
    // The tables of a template are made by such a file.
    if (before.includes('QueryRunner')) await this.dropDatabases();
    try {
      const limitMs = Math.max(patience.atLeastMs, patience.times * Math.max(...specs.map(tookMs)));
      const order = { ATOLL_MUTANTS_ORDER: JSON.stringify(specs) };
      const results = await this.jest(['--bail', '--runTestsByPath', ...specs], order, limitMs);
      const killer = results.find(({ failed }) => failed !== undefined);
      if (killer) return { lives: false, by: `${relative(this.copy, killer.path)}: ${killer.failed}` };
      if (results.length < specs.length) return { lives: false, by: 'specs that do not end' };
      return { lives: true, specs: specs.length };
    } finally {
      writeFileSync(file, before);
      await this.dropDatabases(before.includes('QueryRunner') ? '' : 'test');
    }
  }

  private note(of: string, spec: string): void {
    this.runBy.set(of, (this.runBy.get(of) ?? new Set()).add(spec));
  }

  private async dropDatabases(kind = ''): Promise<void> {
    const client = new pg.Client(this.postgres.url);
    await client.connect();
    const { rows } = await client.query<{ name: string }>(
      `SELECT datname AS name FROM pg_database WHERE starts_with(datname, $1)`,
      [`atoll_${kind}`],
    );
    for (const { name } of rows) await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await client.end();
  }

  /** The results of the spec files that ended. `limitMs`: between the ends of two, or Jest is killed. */
  private jest(words: readonly string[], variables: Record<string, string>, limitMs?: number): Promise<SpecResult[]> {
    const report = join(this.folder, 'report');
    writeFileSync(report, '');
    const node = [
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      'node_modules/jest/bin/jest.js',
    ];
    const [reporter, sequencer] = ['reporter.js', 'sequencer.js'].map((name) => join(import.meta.dirname, name));
    const options = ['--silent', `--reporters=${reporter}`, `--testSequencer=${sequencer}`];
    const shared = { ATOLL_TEST_RUN_DIR: this.folder, ATOLL_MUTANTS_REPORT: report };
    const child = spawn(process.execPath, [...node, ...options, ...words], {
      cwd: this.copy,
      env: { ATOLL_TEST_TIMEOUT_FACTOR: '3', ATOLL_TEST_ALL: '1', ...process.env, ...variables, ...shared },
      stdio: 'ignore',
      detached: true,
    });
    this.running = child.pid;
    return new Promise((resolve) => {
      const startedMs = Date.now();
      const looks = setInterval(() => {
        const silentMs = Date.now() - Math.max(startedMs, statSync(report).mtimeMs);
        if (limitMs === undefined || silentMs <= limitMs) return;
        clearInterval(looks);
        endGroup(child.pid);
      }, lookMs);
      child.once('close', () => {
        clearInterval(looks);
        // With `--bail` Jest ends without its workers, which go on with specs that hang.
        endGroup(child.pid);
        this.running = undefined;
        const lines = readFileSync(report, 'utf8').split('\n').slice(0, -1);
        resolve(lines.map((line) => JSON.parse(line) as SpecResult));
      });
    });
  }
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // All of it has ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function projectOf(path: string): string {
  return /^(?:apps|libs)\/[^/]+/.exec(path)?.[0] ?? '';
}
