import { expect, it, jest } from '@jest/globals';
import { itemsPerSlice, Pace, Turns } from '@atoll/waiting';
import type { Grid } from './grid.js';
import { rate } from './rated-usage.js';

it('usage is rated a slice of its intervals in each turn of the event loop', async () => {
  const turns = new Turns();
  const slices: number[] = [];
  jest.spyOn(turns, 'next').mockImplementation((items) => Promise.resolve(void slices.push(items)));
  const count = 3 * itemsPerSlice;
  const all = <T>(value: T) => new Array<T>(count).fill(value);
  const grid = { lengthsMs: all(1_000), buckets: all(0), bucketCount: 1 } as unknown as Grid;
  const changes = { deltasNano: [1_000_000_000n, ...all(undefined)], momentsNano: all(undefined) };
  const { heldNano } = await rate(changes, grid, all(1n), new Pace(turns));
  expect(heldNano).toEqual([BigInt(count) * 1_000n * 1_000_000_000n]);
  expect(slices).toEqual([itemsPerSlice, itemsPerSlice, itemsPerSlice]);
});
