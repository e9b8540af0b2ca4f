import { expect, it } from '@jest/globals';
import { MinuteCounts } from './minute-counts.js';

it('what is counted is forgotten a minute after the first of it, each key by itself, and the oldest of very many', () => {
  let nowMs = 0;
  const counts = new MinuteCounts(2, () => nowMs);
  for (const key of ['one', 'one', 'two']) counts.add(key);
  const areTooMany = () => ['one', 'two', 'three'].map((key) => counts.areTooMany(key));
  expect(areTooMany()).toEqual([true, false, false]);
  nowMs = 59_999;
  counts.add('two');
  expect(areTooMany()).toEqual([true, true, false]);
  nowMs = 60_000;
  expect(areTooMany()).toEqual([false, false, false]);
  // Whose minute began first, and not who was counted first of all.
  for (const key of ['two', 'two', 'one', 'one']) counts.add(key);
  for (let other = 0; other < 9_999; other += 1) counts.add(`other ${other}`);
  expect(areTooMany()).toEqual([true, false, false]);
});
