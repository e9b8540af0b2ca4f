import { availableParallelism } from 'node:os';
import { run, type Tally } from './run.ts';

interface Check {
  name: string;
  command: string;
}

/** The longest first, so that the short ones fill the gaps. */
const checks: readonly Check[] = [
  { name: 'worked example', command: 'node tools/check/worked-example.ts' },
  { name: 'migration drift, upgrades, statements and exact money', command: 'node dist/tools/check/tables.js' },
  { name: 'lint', command: 'oxlint' },
  { name: 'types', command: 'tsc --noEmit --checkers 1 -p tsconfig.json' },
  { name: 'OpenAPI', command: 'node dist/tools/check/openapi.js' },
  { name: 'types of the console', command: 'tsc --noEmit --checkers 1 -p apps/console/tsconfig.json' },
  { name: 'unused code', command: 'knip' },
  { name: 'format', command: 'oxfmt --check .' },
  { name: 'services', command: 'node dist/tools/check/services.js' },
  { name: 'projects', command: 'node tools/check/projects.ts' },
  { name: 'file names', command: 'node tools/check/file-names.ts' },
  { name: 'folders', command: 'node tools/check/folders.ts' },
  { name: 'line width', command: 'node tools/check/line-width.ts' },
  { name: 'bundle sizes', command: 'node tools/check/bundle-sizes.ts' },
];

/**
 * The checks do not see the terminal, so they are told. The native compiler and linter, of Go, collect their garbage
 * less often: a third less work, for some hundred MB more. Each uses one processor, as other checks use the others: two
 * threads of the linter work out the same types twice, a seventh of its work.
 */
const env: Record<string, string> = {
  ...(process.stdout.isTTY ? { FORCE_COLOR: '1' } : { NO_COLOR: '1' }),
  GOGC: '400',
  GOMAXPROCS: '1',
};

/**
 * Runs all checks, as many at once as there are processors, or one at a time in the `background` of other work. Expects
 * a build. Tells what each found, and goes on after a failure.
 */
export async function check(tell: (line: string) => void, { background = false } = {}): Promise<Tally> {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  const one = async ({ name, command }: Check) => {
    const { ok, output, durationMs } = await run(command, { capture: true, env, background });
    tally[ok ? 'passed' : 'failed'] += 1;
    tell(
      `${ok ? '✓' : '✗'} ${name} (${(durationMs / 1000).toFixed(1)} s)${ok ? '' : `: ${command}\n${output.replace(/^/gm, '    ')}`}`,
    );
  };
  const queue = checks.values();
  await Promise.all(
    Array.from({ length: background ? 1 : availableParallelism() }, async () => {
      for (const next of queue) await one(next);
    }),
  );
  return tally;
}

if (import.meta.main) {
  const built = await run('npm run --silent build');
  const { passed, failed } = built.ok ? await check(console.log) : { passed: 0, failed: 1 };
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}
