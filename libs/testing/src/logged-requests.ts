import { appendFileSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a platform answered a story. */
export interface Answered {
  /** `GET /api/…` */
  call: string;
  status: number;
  requestId: string;
}

const shownCalls = 3;

/** Adds to what the platform of this process has printed, a file in the folder `ATOLL_E2E_OUTPUT` of the run. */
export function keepOutput(pid: number | undefined, printed: Buffer): void {
  const { ATOLL_E2E_OUTPUT: folder } = process.env;
  if (folder !== undefined) appendFileSync(join(folder, `${pid}.log`), printed);
}

/**
 * The latest calls of a story that were refused or failed, or its last one, each with the lines that all platforms of
 * the run have logged of it.
 */
export function loggedOf(answers: readonly Answered[], folder = process.env.ATOLL_E2E_OUTPUT): string {
  const refused = answers.filter(({ status }) => status >= 400);
  const shown = (refused.length > 0 ? refused : answers.slice(-1)).slice(-shownCalls);
  const lines = (folder === undefined ? [] : globSync(join(folder, '*.log'))).flatMap((file) =>
    readFileSync(file, 'utf8').split('\n'),
  );
  return shown
    .map(({ call, status, requestId }) =>
      [`${call} → ${status}`, ...lines.filter((line) => line.includes(`"request_id":"${requestId}"`))].join('\n'),
    )
    .join('\n');
}
