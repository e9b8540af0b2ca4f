import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '@atoll/testing';
import { mutationsOf, type Mutation } from './mutations.js';
import { SpecRuns } from './spec-runs.js';
import { targets, type Target } from './targets.js';

const enough = 0.9;

/**
 * `npm run mutants -- --seed 7 --count 20 events apps/teams`: plants so many mutants in each target (all, unless some
 * are named; a path takes the part of each target below it, `path:line` that line), each by itself, and runs the specs
 * of the same project that run its function: those beside it first.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string', default: '1' }, count: { type: 'string', default: '20' } },
});
const root = process.cwd();

const copy = mkdtempSync(join(tmpdir(), 'atoll-mutants-'));
execFileSync('git', ['worktree', 'add', '--quiet', '--detach', '--force', copy, 'HEAD'], { cwd: root });
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
const postgres = await startPostgres();
const runs = new SpecRuns(copy, postgres);
process.once('exit', () => {
  runs.end();
  execFileSync('git', ['worktree', 'remove', '--force', copy], { cwd: root });
  rmSync(copy, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const tallies: string[] = [];
let isEnough = true;
try {
  const drawn = targets.map((target) => ({
    target,
    mutants: choose(mutationsIn(target), Number(values.count), Number(values.seed)),
  }));
  const failing = await runs.learn(drawn.flatMap(({ mutants }) => mutants));
  for (const spec of failing) console.log(`LEFT OUT, it fails without a mutant: ${spec}`);
  for (const { target, mutants } of drawn) await plantAll(target, mutants);
} finally {
  await postgres.stop();
}
console.log(`\n${tallies.join('\n')}\nseed ${values.seed}`);
process.exitCode = isEnough ? 0 : 1;

async function plantAll(target: Target, mutants: readonly Mutation[]): Promise<void> {
  if (mutants.length === 0) return;
  let killed = 0;
  for (const [at, mutant] of mutants.entries()) {
    const verdict = await runs.judge(mutant);
    if (!verdict.lives) killed += 1;
    const { path, line, what } = mutant;
    const how = verdict.lives ? `SURVIVED ${verdict.specs} spec files` : 'killed';
    console.log(
      `${target.name} ${at + 1}/${mutants.length} ${how} ${path}:${line} ${what}${verdict.lives ? '' : `\n  by ${verdict.by}`}`,
    );
  }
  const share = killed / mutants.length;
  tallies.push(`${target.name}: ${killed} of ${mutants.length} killed (${(100 * share).toFixed(0)} %)`);
  isEnough &&= share >= enough;
}

function mutationsIn({ name, files, isOne = () => true }: Target): Mutation[] {
  const paths = globSync(files, { cwd: copy }).filter(
    (path) => !/\.spec\.ts$|-fixture\.ts$|\/index\.ts$|\.entity\.ts$|\/migrations\//.test(path),
  );
  const isWhole = positionals.length === 0 || positionals.includes(name);
  const isNamed = ({ path, line }: Mutation) =>
    positionals.some((of) => (of.includes(':') ? `${path}:${line}` === of : path.startsWith(of)));
  return paths
    .toSorted()
    .flatMap((path) => mutationsOf(path, readFileSync(join(copy, path), 'utf8')))
    .filter((mutant) => (isWhole || isNamed(mutant)) && isOne(mutant));
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
