import { expect, it } from '@jest/globals';
import { contextOf, operator } from '@atoll/testing';
import { askEach } from './ask-each.js';

it('a service is given two seconds to answer, and no more than the caller waits', async () => {
  const nowMs = Date.now();
  const given = async (deadlineAtMs: number) => {
    const ask = (_service: 'pods', context: { deadlineAtMs: number }) => Promise.resolve(context.deadlineAtMs);
    return (await askEach(['pods'] as const, { ...contextOf(operator), deadlineAtMs }, ask)).answers[0] ?? 0;
  };
  expect(await given(nowMs + 100)).toBe(nowMs + 100);
  expect(await given(nowMs + 3_600_000)).toBeLessThanOrEqual(Date.now() + 2_000);
});
