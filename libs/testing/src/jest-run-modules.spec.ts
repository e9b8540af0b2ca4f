import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
let rootDir: string;

/**
 * What one of two equal spec files finds: what ran on its global object so far, whose `expect` its fixture has, how
 * many are told of each of its tests, and what the other left.
 */
interface Found {
  ran: string[];
  fixtureOf: string;
  told: number;
  left?: string;
}

const spec = `
import { appendFileSync } from 'node:fs';
import { it, jest } from '@jest/globals';
import './product.ts';
import { testPath } from './a-fixture.ts';
it('finds', () => {
  const fixtureOf = testPath().replace(/.*\\//, '');
  const told = globalThis[Symbol.for('EVENT_HANDLERS')].length;
  appendFileSync(process.env.FOUND, JSON.stringify({ ran: globalThis.ran, fixtureOf, told, left: process.env.LEFT, now: Date.now() > 0 }) + '\\n');
  process.env.LEFT = 'something';
  jest.useFakeTimers({ now: -1 });
});
`;

beforeAll(() => {
  rootDir = mkdtempSync(join(tmpdir(), 'atoll-jest-'));
  const folder = join(rootDir, 'libs/example/src');
  mkdirSync(folder, { recursive: true });
  const file = (name: string, text: string) => writeFileSync(join(folder, name), text);
  file('product.ts', `(globalThis.ran ??= []).push('product');`);
  file(
    'a-fixture.ts',
    `import { expect } from '@jest/globals';\n(globalThis.ran ??= []).push('fixture');\nexport const testPath = () => expect.getState().testPath;`,
  );
  file('one.spec.ts', spec);
  file('two.spec.ts', spec);
  writeFileSync(join(rootDir, 'package.json'), '{ "type": "module" }');
});
afterAll(() => rmSync(rootDir, { recursive: true }));

/** Runs the spec files of a folder, and returns what they wrote down. */
async function run<T>(folder: string, workers: number, variables: Record<string, string>): Promise<T[]> {
  const config = {
    rootDir,
    roots: [join(rootDir, folder)],
    cacheDirectory: join(rootDir, 'cache'),
    transform: {},
    testMatch: ['**/*.spec.ts'],
    extensionsToTreatAsEsm: ['.ts'],
    testEnvironment: here('jest-run-environment.ts'),
    runtime: here('jest-run-modules.ts'),
  };
  const found = join(rootDir, `found-${Object.keys(variables).join('-')}`);
  const jest = [
    here('../../../node_modules/jest/bin/jest.js'),
    '--maxWorkers',
    `${workers}`,
    '--config',
    JSON.stringify(config),
  ];
  const env = { ...process.env, NODE_OPTIONS: '', FOUND: found, ATOLL_TEST_ISOLATED: '', ...variables };
  await promisify(execFile)(process.execPath, ['--experimental-vm-modules', ...jest], { env });
  const lines = readFileSync(found, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as T);
}

async function runBoth(variables: Record<string, string>): Promise<Found[]> {
  return (await run<Found>('libs/example', 1, variables)).toSorted((one, other) => one.ran.length - other.ran.length);
}

it('loads the product once for several spec files, and a fixture for each; a file leaves neither settings nor false time, nor who is told of its tests', async () => {
  const found = await runBoth({});
  expect(found.map(({ ran }) => ran)).toEqual([
    ['product', 'fixture'],
    ['product', 'fixture', 'fixture'],
  ]);
  expect(found.map(({ fixtureOf }) => fixtureOf).toSorted()).toEqual(['one.spec.ts', 'two.spec.ts']);
  expect(found).toEqual([expect.objectContaining({ now: true }), expect.objectContaining({ now: true })]);
  expect(found.filter(({ left }) => left !== undefined)).toEqual([]);
  const [first, second] = found.map(({ told }) => told);
  expect(first).toBeGreaterThan(0);
  expect(second).toBe(first);
});

it('loads everything for each spec file where that is asked for', async () => {
  const found = await runBoth({ ATOLL_TEST_ISOLATED: '1' });
  expect(found.map(({ ran }) => ran)).toEqual([
    ['product', 'fixture'],
    ['product', 'fixture'],
  ]);
});

it('what runs after each test knows whether it failed', async () => {
  const folder = join(rootDir, 'libs/failing/src');
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'one.spec.ts'),
    `import { appendFileSync } from 'node:fs';
     import { afterEach, it } from '@jest/globals';
     import { hasTestFailed } from '${here('test-failed.ts')}';
     afterEach(() => appendFileSync(process.env.FOUND, hasTestFailed() + '\\n'));
     it('passes', () => undefined);
     it('fails', () => { throw new Error('as it should'); });
     it('passes again', () => undefined);`,
  );
  await expect(run('libs/failing', 1, { FAILS: '1' })).rejects.toThrow('as it should');
  expect(readFileSync(join(rootDir, 'found-FAILS'), 'utf8')).toBe('false\ntrue\nfalse\n');
});

it('lets the first worker load before the others begin to', async () => {
  const folder = join(rootDir, 'libs/slow/src');
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'slow.ts'),
    `import { appendFileSync } from 'node:fs';
     const from = Date.now();
     while (Date.now() - from < 500);
     appendFileSync(process.env.FOUND, JSON.stringify({ from, to: Date.now() }) + '\\n');`,
  );
  for (const name of ['one', 'two', 'three']) {
    writeFileSync(
      join(folder, `${name}.spec.ts`),
      `import { it } from '@jest/globals';\nimport './slow.ts';\nit('runs', () => undefined);`,
    );
  }
  const runDir = join(rootDir, 'run');
  mkdirSync(runDir);
  // However long it takes to start, the others wait for it.
  const variables = { ATOLL_TEST_RUN_DIR: runDir, ATOLL_TEST_TIMEOUT_FACTOR: '1000' };
  const [first, ...others] = await run<{ from: number; to: number }>('libs/slow', 3, variables);
  expect(others).toHaveLength(2);
  for (const { from } of others) expect(from).toBeGreaterThanOrEqual(first?.to ?? Infinity);
});
