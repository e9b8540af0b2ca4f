import { appendFileSync } from 'node:fs';

/** What becomes of a spec file. */
export interface SpecResult {
  /** Its absolute path. */
  readonly path: string;
  readonly tookMs: number;
  /** The first spec that failed; undefined if the file passed. */
  readonly failed?: string;
}

/** The part of Jest's result of a spec file that is read. */
interface TestResult {
  readonly testFilePath: string;
  readonly perfStats: { readonly start: number; readonly end: number };
  readonly testResults: readonly { readonly status: string; readonly fullName: string }[];
  readonly testExecError?: object;
}

/**
 * Writes a line of JSON per spec file to `ATOLL_MUTANTS_REPORT`: Jest's own report is not written when a run ends
 * early.
 */
class Reporter {
  onTestResult(_: unknown, { testFilePath: path, perfStats, testResults, testExecError }: TestResult): void {
    const first = testExecError
      ? 'it cannot be loaded'
      : testResults.find(({ status }) => status === 'failed')?.fullName;
    const result: SpecResult = {
      path,
      tookMs: perfStats.end - perfStats.start,
      ...(first !== undefined && { failed: first }),
    };
    appendFileSync(process.env.ATOLL_MUTANTS_REPORT ?? '', `${JSON.stringify(result)}\n`);
  }
}

export { Reporter as default };
