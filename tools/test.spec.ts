import { describe, expect, it } from '@jest/globals';
import { tallyOf, type JestReport } from './test.js';

const report = (counts: Partial<JestReport>): JestReport => ({
  success: true,
  numPassedTests: 7,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  numRuntimeErrorTestSuites: 0,
  ...counts,
});

describe('the tally of a run', () => {
  it('counts what passed', () => expect(tallyOf(report({}))).toEqual({ passed: 7, failed: 0 }));

  it('counts as failed what failed, was skipped, or did not start', () => {
    const mixed = report({ success: false, numFailedTests: 1, numPendingTests: 1, numTodoTests: 1, numRuntimeErrorTestSuites: 1 });
    expect(tallyOf(mixed)).toEqual({ passed: 7, failed: 4 });
  });

  it('is a failure where no test ran, where Jest says so, and where it left no report', () => {
    expect(tallyOf(report({ numPassedTests: 0 })).failed).toBe(1);
    expect(tallyOf(report({ success: false })).failed).toBe(1);
    expect(tallyOf(undefined)).toEqual({ passed: 0, failed: 1 });
  });
});
