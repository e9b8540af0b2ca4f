import { expect, it } from '@jest/globals';
import { RecentAnswers } from './recent-answers.js';

it('a hundred answers are kept, and of more the one goes that was asked for the longest ago', () => {
  const recent = new RecentAnswers<object>();
  const add = (key: string) => recent.add(key, Promise.resolve({}));
  for (const key of ['first', 'second', ...Array.from({ length: 98 }, (_, at) => `other ${at}`)]) add(key);
  add('first');
  add('last');
  const isKept = (key: string) => recent.get(key) !== undefined;
  expect(['first', 'second', 'other 0', 'last'].map(isKept)).toEqual([true, false, true, true]);
});
