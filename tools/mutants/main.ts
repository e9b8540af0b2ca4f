import { execFileSync, spawn } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../run.ts';
import { mutationsOf, type Mutation } from './mutations.ts';

/** What has the rules that cost money, GPUs or another team's privacy when they are wrong. */
const guarded = [
  'libs/state-machine/src/**/*.ts',
  'libs/events/src/**/*.ts',
  'libs/contracts/src/access.ts',
  'libs/team-directory/src/**/*.ts',
  'apps/billing/src/{money,reports,usage}/**/*.ts',
  'apps/gpuaas/src/{allocation,sharing}/**/*.ts',
];

/** A mutant may make its specs hang: then it is as good as killed. */
const patienceMs = 300_000;
const enough = 0.9;

interface Planted extends Mutation {
  readonly path: string;
}

/** `npm run mutants -- --seed 7 --count 20 libs/events`: plants so many mutants, each by itself, and runs the specs of the same project that reach it. */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string', default: '1' }, count: { type: 'string', default: '40' } },
});

const copy = mkdtempSync(join(tmpdir(), 'atoll-mutants-'));
execFileSync('git', ['worktree', 'add', '--quiet', '--detach', '--force', copy, 'HEAD'], { cwd: root });
process.once('exit', () => {
  execFileSync('git', ['worktree', 'remove', '--force', copy], { cwd: root });
  rmSync(copy, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
symlinkSync(join(root.pathname, 'node_modules'), join(copy, 'node_modules'));

const survivors: Planted[] = [];
const planted = choose(all(), Number(values.count), Number(values.seed));
for (const [at, mutant] of planted.entries()) {
  const killed = await isKilled(mutant);
  if (!killed) survivors.push(mutant);
  console.log(`${at + 1}/${planted.length} ${killed ? 'killed' : 'SURVIVED'} ${mutant.path}:${mutant.line} ${mutant.what}`);
}
const share = planted.length === 0 ? 0 : 1 - survivors.length / planted.length;
console.log(`\n${planted.length - survivors.length} of ${planted.length} killed (${(100 * share).toFixed(0)} %), seed ${values.seed}`);
process.exitCode = share >= enough ? 0 : 1;

function all(): Planted[] {
  const paths = globSync(guarded, { cwd: copy }).filter((path) => !/\.spec\.ts$|-fixture\.ts$|\/index\.ts$|\.entity\.ts$/.test(path));
  const wanted = paths.filter((path) => positionals.length === 0 || positionals.some((of) => path.startsWith(of)));
  return wanted
    .toSorted()
    .flatMap((path) => mutationsOf(path, readFileSync(join(copy, path), 'utf8')).map((mutation) => ({ ...mutation, path })));
}

/** The same ones for the same seed, each file with the same chance for each of its mutations. */
function choose(from: readonly Planted[], count: number, seed: number): Planted[] {
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

async function isKilled({ path, text }: Planted): Promise<boolean> {
  const file = join(copy, path);
  const before = readFileSync(file, 'utf8');
  writeFileSync(file, text);
  try {
    return !(await passes(path));
  } finally {
    writeFileSync(file, before);
  }
}

/** Whether the specs of the same project that reach this file pass. */
function passes(path: string): Promise<boolean> {
  const [project = ''] = /^(?:apps|libs)\/[^/]+/.exec(path) ?? [];
  const words = ['--silent', 'jest', '--', '--bail', '--silent', '--roots', join(copy, project), '--findRelatedTests', path];
  const child = spawn('npm', ['run', ...words], { cwd: copy, stdio: 'ignore', detached: true });
  return new Promise((resolve) => {
    const late = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), patienceMs);
    child.once('exit', (code) => {
      clearTimeout(late);
      resolve(code === 0);
    });
  });
}
