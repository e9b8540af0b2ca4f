import { execFileSync, spawn } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '@atoll/testing';
import { mutationsOf, type Mutation } from './mutations.js';
import { targets, type Target } from './targets.js';

/** A mutant may make its specs hang: then it is as good as killed. */
const patienceMs = 300_000;
const enough = 0.9;

/**
 * `npm run mutants -- --seed 7 --count 20 events apps/teams`: plants so many mutants in each target (all, unless some are named; a path takes the part of each target
 * below it), each by itself, and runs the specs of the same project that reach its file: those beside it first.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string', default: '1' }, count: { type: 'string', default: '20' } },
});
const root = process.cwd();

const copy = mkdtempSync(join(tmpdir(), 'atoll-mutants-'));
execFileSync('git', ['worktree', 'add', '--quiet', '--detach', '--force', copy, 'HEAD'], { cwd: root });
/** The process group of the specs that run. */
let running: number | undefined;
process.once('exit', () => {
  if (running !== undefined) process.kill(-running, 'SIGKILL');
  execFileSync('git', ['worktree', 'remove', '--force', copy], { cwd: root });
  rmSync(copy, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

const postgres = await startPostgres();
const related = new Map<string, readonly string[]>();
const tallies: string[] = [];
let isEnough = true;
try {
  for (const target of targets) await plantAll(target);
} finally {
  await postgres.stop();
}
console.log(`\n${tallies.join('\n')}\nseed ${values.seed}`);
process.exitCode = isEnough ? 0 : 1;

async function plantAll(target: Target): Promise<void> {
  const planted = choose(mutationsIn(target), Number(values.count), Number(values.seed));
  if (planted.length === 0) return;
  let killed = 0;
  for (const [at, mutant] of planted.entries()) {
    const lives = await survives(mutant);
    if (!lives) killed += 1;
    console.log(`${target.name} ${at + 1}/${planted.length} ${lives ? 'SURVIVED' : 'killed'} ${mutant.path}:${mutant.line} ${mutant.what}`);
  }
  const share = killed / planted.length;
  tallies.push(`${target.name}: ${killed} of ${planted.length} killed (${(100 * share).toFixed(0)} %)`);
  isEnough &&= share >= enough;
}

function mutationsIn({ name, files, isOne = () => true }: Target): Mutation[] {
  const paths = globSync(files, { cwd: copy }).filter(
    (path) => !/\.spec\.ts$|-fixture\.ts$|\/index\.ts$|\.entity\.ts$|\/migrations\//.test(path),
  );
  const isWhole = positionals.length === 0 || positionals.includes(name);
  return paths
    .filter((path) => isWhole || positionals.some((of) => path.startsWith(of)))
    .toSorted()
    .flatMap((path) => mutationsOf(path, readFileSync(join(copy, path), 'utf8')).filter(isOne));
}

/** The same ones for the same seed, each mutation with the same chance. */
function choose(from: readonly Mutation[], count: number, seed: number): Mutation[] {
  const random = mulberry32(seed);
  const drawn = from.map((mutant) => ({ mutant, at: random() })).toSorted((one, other) => one.at - other.at);
  return drawn.slice(0, count).map(({ mutant }) => mutant);
}

/** The generator of that name by Tommy Ettinger, in the public domain. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function survives({ path, text }: Mutation): Promise<boolean> {
  const file = join(copy, path);
  const specs = await specsOf(path);
  const beside = specs.filter((spec) => dirname(spec) === dirname(path));
  const before = readFileSync(file, 'utf8');
  writeFileSync(file, text);
  try {
    for (const group of [beside, specs.filter((spec) => !beside.includes(spec))]) {
      if (group.length > 0 && !(await jest(['--bail', '--silent', '--runTestsByPath', ...group])).passed) return false;
    }
    return true;
  } finally {
    writeFileSync(file, before);
  }
}

/** The specs of the same project that reach this file. */
async function specsOf(path: string): Promise<readonly string[]> {
  const [project = ''] = /^(?:apps|libs)\/[^/]+/.exec(path) ?? [];
  const known = related.get(path);
  if (known) return known;
  const { output } = await jest(['--listTests', '--roots', join(copy, project), '--findRelatedTests', path]);
  const specs = output.split('\n').flatMap((line) => (line.endsWith('.spec.ts') ? [relative(copy, line)] : []));
  related.set(path, specs);
  return specs;
}

function jest(words: readonly string[]): Promise<{ passed: boolean; output: string }> {
  const env = { ...process.env, ATOLL_TEST_DATABASE_URL: postgres.url };
  const child = spawn('npm', ['run', '--silent', 'jest', '--', ...words], {
    cwd: copy,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  running = child.pid;
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((resolve) => {
    const late = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), patienceMs);
    child.once('close', (code) => {
      clearTimeout(late);
      running = undefined;
      resolve({ passed: code === 0, output });
    });
  });
}
