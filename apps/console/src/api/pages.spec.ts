import { expect, it } from '@jest/globals';
import { everyRow, pageOf, recentRows } from './pages.js';
import { Problem } from './problem.js';
import { mostOfPage } from './query-client.js';

const refusal = new Problem(429, 'too_many_requests', '', null, {}, 0.001);
const row = { created_at: new Date().toISOString() };

/** A listing of five pages. The query ends as its second call is answered, or as that is refused. */
function endedAtSecondCall(isRefused: boolean) {
  const ended = new AbortController();
  const calls: number[] = [];
  const read = ({ page }: { page: number }) => {
    calls.push(page);
    if (calls.length === 2) ended.abort();
    if (calls.length === 2 && isRefused) return Promise.reject(refusal);
    return Promise.resolve({ data: [row], pagination: { total: 5 * mostOfPage } });
  };
  return { signal: ended.signal, read, calls };
}

it.each([
  ['all rows', everyRow, [1, 2], false],
  ['all rows', everyRow, [1, 2], true],
  ['the recent rows', recentRows, [1, 5], false],
  ['the recent rows', recentRows, [1, 5], true],
])('%s: a query that has ended makes no more calls', async (_name, rowsOf, expected, isRefused) => {
  const { signal, read, calls } = endedAtSecondCall(isRefused);
  const thrown: unknown = await rowsOf(read, signal).catch((error: unknown) => error);
  expect(thrown).toBe(signal.reason);
  expect(calls).toEqual(expected);
});

it.each([0, 1, 2, 4, 5, 8])('of %i pages all rows are read in their order, and three pages at once', async (pages) => {
  const numbers = Array.from({ length: pages }, (_, at) => at + 1);
  let [underWay, most] = [0, 0];
  const read = async ({ page }: { page: number }) => {
    underWay += 1;
    most = Math.max(most, underWay);
    // The later a page, the sooner it is answered.
    for (let turns = 2 * (pages - page); turns > 0; turns -= 1) await Promise.resolve();
    underWay -= 1;
    return { data: numbers.slice(page - 1, page), pagination: { total: pages * mostOfPage } };
  };
  expect((await everyRow(read, new AbortController().signal)).data).toEqual(numbers);
  expect(most).toBe(Math.min(3, Math.max(1, pages - 1)));
});

it.each([
  ['the first page is refused at once', 1, 1],
  ['a later one is asked for three times more', 2, 4],
])('of a listing that makes too many calls, %s', async (_name, page, times) => {
  let calls = 0;
  const refuse = () => {
    calls += 1;
    return Promise.reject(refusal);
  };
  await expect(pageOf(refuse, page, new AbortController().signal)).rejects.toBe(refusal);
  expect(calls).toBe(times);
});
