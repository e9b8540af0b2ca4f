import { afterEach, expect, it } from '@jest/globals';
import { QueryObserver } from '@tanstack/react-query';
import { Problem } from './problem.js';
import { queryClient, restAfterFailure } from './query-client.js';

afterEach(() => queryClient.clear());

const refusal = (status: number, code: string, detail = '', retryAfterSeconds: number | null = null) =>
  new Problem(status, code, detail, null, {}, retryAfterSeconds);

/** How long a query rests that has failed so often, in a tab of the shortest and one of the longest rests. */
function restsOf(error: Error | null, errorUpdateCount = 1): unknown[] {
  const query = { state: { error, errorUpdateCount } } as Parameters<typeof restAfterFailure>[0];
  return [0, 1].map((share) => restAfterFailure(query, share));
}

it.each([
  ['offline', refusal(0, 'offline')],
  ['too many calls', refusal(429, 'too_many_requests')],
  ['a proxy without a gateway', refusal(502, 'unknown')],
  ['not available', refusal(503, 'unavailable')],
  ['too slow', refusal(504, 'deadline_exceeded')],
])('what failed and passes is asked again by itself, the more seldom the longer it lasts: %s', (_name, error) => {
  expect([1, 2, 3, 4, 5, 20].map((failures) => restsOf(error, failures))).toEqual([
    [5_000, 7_500],
    [10_000, 15_000],
    [20_000, 30_000],
    [40_000, 60_000],
    [60_000, 90_000],
    [60_000, 90_000],
  ]);
});

it('what the platform says when to ask again is kept to', () => {
  expect(restsOf(refusal(503, 'unavailable', '', 840))).toEqual([840_000, 840_000]);
  expect(restsOf(refusal(503, 'unavailable', '', 1))).toEqual([5_000, 7_500]);
});

it.each([
  ['no failure', null],
  ['400', refusal(400, 'invalid_input')],
  ['401', refusal(401, 'unauthenticated')],
  ['403', refusal(403, 'forbidden')],
  ['404', refusal(404, 'not_found')],
  ['500', refusal(500, 'internal')],
])('nothing is asked again for what does not pass by itself: %s', (_name, error) => {
  expect(restsOf(error)).toEqual([false, false]);
});

/** Reads once, as a page would; the rests count from what was before. */
async function read(key: string, answer: () => Promise<unknown>): Promise<void> {
  await queryClient.fetchQuery({ queryKey: [key], queryFn: answer, staleTime: 0, retry: false }).catch(() => undefined);
}

it('what is not found any more is not shown as it was, unlike what cannot be read now', async () => {
  await read('pod', () => Promise.resolve('running'));
  await read('pod', () => Promise.reject(refusal(503, 'unavailable')));
  expect(queryClient.getQueryData(['pod'])).toBe('running');
  await read('pod', () => Promise.reject(refusal(404, 'not_found')));
  expect(queryClient.getQueryData(['pod'])).toBeUndefined();
});

it('a success lets the rests begin anew', async () => {
  const failing = () => Promise.reject(refusal(503, 'unavailable'));
  const rest = () => {
    const query = queryClient.getQueryCache().find({ queryKey: ['members'] });
    return query && restAfterFailure(query, 0);
  };
  for (const expected of [5_000, 10_000]) {
    await read('members', failing);
    expect(rest()).toBe(expected);
  }
  await read('members', () => Promise.resolve([]));
  expect(rest()).toBe(false);
  await read('members', failing);
  expect(rest()).toBe(5_000);
});

it.each([
  ['forbidden', 'The role viewer may not do this. Allowed roles: member.', 1],
  ['forbidden', 'Only a platform_admin may do this.', 1],
  ['not_found', 'No such team.', 1],
  ['forbidden', 'This needs a log-in within the last 10 minutes. Log in again.', 0],
  ['not_found', 'No such pod.', 0],
])('%s: %s The profile is read %s times again for it, however often it comes', async (code, detail, times) => {
  let reads = 0;
  const profile = new QueryObserver(queryClient, {
    queryKey: ['profile'],
    queryFn: () => Promise.resolve((reads += 1)),
    staleTime: Infinity,
  });
  const stop = profile.subscribe(() => undefined);
  await profile.refetch();
  const before = reads;
  const refused = () => Promise.reject(refusal(code === 'forbidden' ? 403 : 404, code, detail));
  for (let turn = 0; turn < 3; turn += 1) {
    await Promise.all(['pods', 'volumes'].map((key) => read(key, refused)));
    await queryClient.getQueryCache().find({ queryKey: ['profile'] })?.promise;
  }
  expect(reads - before).toBe(times);
  // Whoever got the role back and loses it again is told so again.
  await read('pods', () => Promise.resolve([]));
  await read('pods', refused);
  await queryClient.getQueryCache().find({ queryKey: ['profile'] })?.promise;
  expect(reads - before).toBe(2 * times);
  stop();
});
