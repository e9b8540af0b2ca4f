import { describe, expect, it } from '@jest/globals';
import { failedChecks, failedSpecs, skippedGroups, tallyOf, type JestReport } from './test.js';

const report = (counts: Partial<JestReport>): JestReport => ({
  success: true,
  numPassedTests: 7,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  numRuntimeErrorTestSuites: 0,
  testResults: [],
  ...counts,
});

const fileOf = (name: string) => new URL(`../${name}.spec.ts`, import.meta.url).pathname;

describe('the tally of a run', () => {
  it('counts what passed', () => expect(tallyOf(report({}))).toEqual({ passed: 7, failed: 0, skipped: 0 }));

  it('counts as failed what failed, is yet to be written, or did not start, and apart what was skipped', () => {
    const mixed = report({
      success: false,
      numFailedTests: 1,
      numPendingTests: 2,
      numTodoTests: 1,
      numRuntimeErrorTestSuites: 1,
    });
    expect(tallyOf(mixed)).toEqual({ passed: 7, failed: 3, skipped: 2 });
  });

  it('is a failure where no test ran, where Jest says so, and where it left no report', () => {
    expect(tallyOf(report({ numPassedTests: 0 })).failed).toBe(1);
    expect(tallyOf(report({ success: false })).failed).toBe(1);
    expect(tallyOf(undefined)).toEqual({ passed: 0, failed: 1, skipped: 0 });
  });

  it('is none where all that there is needs what the machine lacks, as stories on containers do', () => {
    expect(tallyOf(report({ numPassedTests: 0, numPendingTests: 5 }))).toEqual({ passed: 0, failed: 0, skipped: 5 });
  });

  it('names each group that did not run once, with the number of its specs', () => {
    const pending = {
      status: 'pending',
      ancestorTitles: ['pods in Podman (not run: Podman was not found)'],
      title: 'starts',
    };
    const assertionResults = [pending, { status: 'passed', ancestorTitles: ['pods'], title: 'ends' }, pending];
    expect(
      skippedGroups(report({ testResults: [{ name: fileOf('pods'), status: 'passed', assertionResults }] })),
    ).toEqual(['NOT RUN, 2 specs: pods in Podman (not run: Podman was not found)']);
  });

  it('names each spec that failed, and each file that did not start', () => {
    const assertionResults = ['failed', 'passed', 'failed'].map((status, at) => ({
      status,
      ancestorTitles: ['pods', 'shells'],
      title: `law ${at}`,
    }));
    const testResults = [
      { name: fileOf('pods'), status: 'failed', assertionResults },
      { name: fileOf('volumes'), status: 'passed', assertionResults: [] },
      { name: fileOf('vms'), status: 'failed', assertionResults: [] },
    ];
    expect(failedSpecs(report({ testResults }))).toEqual([
      'FAILED: pods.spec.ts: pods › shells › law 0',
      'FAILED: pods.spec.ts: pods › shells › law 2',
      'FAILED: vms.spec.ts',
    ]);
  });

  it('names each check that failed, without what it printed', () => {
    const found = ['✓ types (3.0 s)', '✗ format (1.2 s): oxfmt --check .\n    a.ts\n    ✗ b.ts', '✓ services (0.4 s)'];
    expect(failedChecks(found)).toEqual(['FAILED: format (1.2 s): oxfmt --check .']);
  });
});
