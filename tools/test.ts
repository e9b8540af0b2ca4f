import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { check } from './check.ts';
import { partsHere, runE2e, topologies } from './e2e.ts';
import { root, run, type Outcome, type Tally } from './run.ts';

/** The part of Jest's JSON report that is counted. */
export interface JestReport {
  success: boolean;
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  numRuntimeErrorTestSuites: number;
  testResults: readonly {
    /** The spec file. */
    name: string;
    status: string;
    assertionResults: readonly { status: string; ancestorTitles: readonly string[]; title: string }[];
  }[];
}

/** `ATOLL_TEST_ALL=1`, as CI sets it: what was skipped has failed. Laws are tried four times as often too. */
const mustRunAll = process.env.ATOLL_TEST_ALL === '1';

/**
 * A suite that does not even start and a run that found no test count as failures; one whose tests this machine cannot
 * run does not.
 */
export function tallyOf(report: JestReport | undefined): Tally {
  if (!report) return { passed: 0, failed: 1, skipped: 0 };
  const { numPassedTests: passed, numPendingTests: skipped } = report;
  const failed = report.numFailedTests + report.numTodoTests + report.numRuntimeErrorTestSuites;
  return { passed, failed: failed || (passed + skipped > 0 && report.success ? 0 : 1), skipped };
}

/** A line a group that did not run, with the reason that stands in its title. */
export function skippedGroups({ testResults }: JestReport): string[] {
  const titles = testResults.flatMap(({ assertionResults }) =>
    assertionResults.flatMap(({ status, ancestorTitles }) =>
      status === 'pending' ? [ancestorTitles.join(' › ')] : [],
    ),
  );
  return [...new Set(titles)].map(
    (title) => `NOT RUN, ${titles.filter((other) => other === title).length} specs: ${title}`,
  );
}

/** A line a spec that failed, and one a file that did not even start: what a reader of a long log looks for first. */
export function failedSpecs({ testResults }: JestReport): string[] {
  return testResults.flatMap(({ name, status, assertionResults }) => {
    const file = relative(fileURLToPath(root), name);
    const failed = assertionResults.filter((each) => each.status === 'failed');
    const lines = failed.map(
      ({ ancestorTitles, title }) => `FAILED: ${file}: ${[...ancestorTitles, title].join(' › ')}`,
    );
    return status === 'failed' && lines.length === 0 ? [`FAILED: ${file}`] : lines;
  });
}

/** A line a check that failed, without what it printed. */
export function failedChecks(found: readonly string[]): string[] {
  return found.flatMap((line) => (line.startsWith('✗ ') ? [`FAILED: ${line.slice(2).split('\n', 1)[0]}`] : []));
}

/** Undefined where Jest ended before it wrote one. */
function readReport(file: string): JestReport | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as JestReport;
  } catch {
    return undefined;
  }
}

async function jest(start: (options: string[]) => Promise<Outcome>): Promise<Tally> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-test-'));
  const file = join(folder, 'report.json');
  const { ok } = await start(['--ci', '--json', `--outputFile=${file}`]);
  const report = readReport(file);
  const tally = tallyOf(report);
  const failed = report ? failedSpecs(report) : [];
  if (report) notRun.push(...skippedGroups(report));
  rmSync(folder, { recursive: true });
  if (ok && tally.failed === 0) return tally;
  failures.push(...(failed.length > 0 ? failed : ['FAILED: Jest, without a failed spec: what it printed says why.']));
  return { ...tally, failed: tally.failed || 1 };
}

const notRun: string[] = [];
const failures: string[] = [];

/** The exit code of a check that cannot be done here, and says why in its last line. */
const cannotRun = 77;

async function schemathesis(): Promise<Tally> {
  const { ok, code } = await run('node dist/tools/schemathesis/main.js');
  if (code === cannotRun) notRun.push('Schemathesis was not run: it needs python3 with venv, and PyPI.');
  if (!ok && code !== cannotRun) failures.push('FAILED: Schemathesis');
  return { passed: ok ? 1 : 0, failed: ok || code === cannotRun ? 0 : 1, skipped: code === cannotRun ? 1 : 0 };
}

/** In a network of their own, whose firewall Docker may change. */
async function specsOnDocker(): Promise<Tally> {
  const built = new URL('../dist/libs/testing/src/docker.js', import.meta.url);
  const { dockerLacks } = (await import(built.href)) as { dockerLacks: () => string | undefined };
  const lacking = dockerLacks();
  if (lacking === undefined) return jest((options) => run(['npm run --silent test:docker --', ...options].join(' ')));
  notRun.push(`NOT RUN, the contract of clusters on Docker: ${lacking}`);
  return { passed: 0, failed: 0, skipped: 1 };
}

/**
 * Everything there is to prove; stops where nothing after it could run. Specs and stories wait for a part of their
 * time, and checks, which only compute, have the processors meanwhile.
 */
async function* everything(): AsyncGenerator<Tally> {
  for (const preparation of ['npm run --silent build', 'node dist/tools/nats-server.js']) {
    if ((await run(preparation)).ok) continue;
    failures.push(`FAILED: ${preparation}`);
    yield { passed: 0, failed: 1, skipped: 0 };
    return;
  }
  const found: string[] = [];
  const checking = check((line) => found.push(line), { background: true });
  console.log('\n== specs');
  yield await jest((options) => run(['npm run --silent jest --', ...options].join(' ')));
  console.log('\n== specs on Docker');
  yield await specsOnDocker();
  for (const topology of topologies) {
    for (const part of await partsHere()) {
      console.log(`\n== ${['e2e', topology, part].filter(Boolean).join(', ')}`);
      yield await jest((options) => runE2e(topology, options, part));
    }
  }
  const checked = await checking;
  failures.push(...failedChecks(found));
  console.log(['\n== checks', ...found].join('\n'));
  yield checked;
  console.log('\n== schemathesis');
  yield await schemathesis();
}

if (import.meta.main) {
  const total: Tally = { passed: 0, failed: 0, skipped: 0 };
  for await (const { passed, failed, skipped } of everything()) {
    total.passed += passed;
    total.failed += failed;
    total.skipped += skipped;
  }
  if (notRun.length > 0) console.log(`\n${notRun.join('\n')}\nnpm run test:setup installs what is missing.`);
  if (failures.length > 0) console.log(`\n${failures.join('\n')}`);
  console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  process.exitCode = total.failed || !total.passed || (mustRunAll && total.skipped) ? 1 : 0;
}
