import { beforeEach, expect, it } from '@jest/globals';
import { Problem, unreachable } from '../../api/problem.js';
import { PriceStart } from './price-start.js';

let now: string;
let starts: string[];
let start: PriceStart;
beforeEach(() => {
  now = 'Sun, 22 Nov 2026 12:00:00 GMT';
  starts = [];
  start = new PriceStart(() => Promise.resolve(now));
});

const answers = (outcome?: Error) => (validFrom: string) => {
  starts.push(validFrom);
  return outcome ? Promise.reject(outcome) : Promise.resolve('set');
};
const isPast = new Problem(400, 'invalid_input', 'Invalid.', null, { valid_from: 'must not be in the past' });

it('a price that is to apply at once starts ten seconds from now, by the clock of the platform', async () => {
  expect(await start.send(answers())).toBe('set');
  expect(starts).toEqual(['2026-11-22T12:00:10.000Z']);
});

it('is sent again with the same start after an answer that was lost', async () => {
  await expect(start.send(answers(unreachable()))).rejects.toThrow('cannot be reached');
  now = 'Sun, 22 Nov 2026 12:05:00 GMT';
  expect(await start.send(answers())).toBe('set');
  expect(starts).toEqual(['2026-11-22T12:00:10.000Z', '2026-11-22T12:00:10.000Z']);
});

it('gets another start where it was not set the first time and that start has passed', async () => {
  await expect(start.send(answers(unreachable()))).rejects.toThrow('cannot be reached');
  now = 'Sun, 22 Nov 2026 12:05:00 GMT';
  const refuseOnce = (validFrom: string) => answers(starts.length < 2 ? isPast : undefined)(validFrom);
  expect(await start.send(refuseOnce)).toBe('set');
  expect(starts).toEqual(['2026-11-22T12:00:10.000Z', '2026-11-22T12:00:10.000Z', '2026-11-22T12:05:10.000Z']);
});

it('says at once that a start has passed which was never sent before', async () => {
  await expect(start.send(answers(isPast))).rejects.toBe(isPast);
  expect(starts).toHaveLength(1);
});
