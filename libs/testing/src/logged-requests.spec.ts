import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepOutput, loggedOf } from './logged-requests.js';

const line = (service: string, requestId: string) => `{"service":"${service}","request_id":"${requestId}"}`;
const answered = (requestId: string, status: number) => ({ call: `GET /api/${requestId}`, status, requestId });

beforeEach(() => {
  process.env.ATOLL_E2E_OUTPUT = mkdtempSync(join(tmpdir(), 'atoll-output-'));
});
afterEach(() => {
  rmSync(process.env.ATOLL_E2E_OUTPUT ?? '', { recursive: true });
  delete process.env.ATOLL_E2E_OUTPUT;
});

it('a refused call is shown with the lines of its request, of every process and even where they came in pieces', () => {
  const printed = `${line('gateway', 'a')}\n${line('gateway', 'b')}\n`;
  keepOutput(1, Buffer.from(printed.slice(0, 50)));
  keepOutput(2, Buffer.from(`${line('teams', 'a')}\n`));
  keepOutput(1, Buffer.from(printed.slice(50)));
  const shown = loggedOf([answered('a', 503), answered('b', 200)]).split('\n');
  expect(shown[0]).toBe('GET /api/a → 503');
  expect(shown.slice(1).toSorted()).toEqual([line('gateway', 'a'), line('teams', 'a')]);
});

it('where none was refused, the last call is shown; of many that were, the last three', () => {
  expect(loggedOf([answered('a', 200), answered('b', 204)])).toBe('GET /api/b → 204');
  expect(loggedOf(['a', 'b', 'c', 'd'].map((id) => answered(id, 404))).split('\n')).toHaveLength(3);
});
