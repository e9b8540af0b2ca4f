import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { allOf, pageOrLast } from './old-pages.js';

/** A listing of so many entries, in pages counted from 0 of 100 at most. */
const listing = (total: number) => (page: number, limit: number) => {
  expect(limit).toBeLessThanOrEqual(100);
  const data = Array.from({ length: total }, (_, at) => at).slice(page * limit, (page + 1) * limit);
  return Promise.resolve({ data, pagination: { page, limit, total } });
};

it('law: a page holds its entries, and one behind the last is the last that has any', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(350), fc.nat(12), fc.integer({ min: 1, max: 350 }), async (total, page, itemsPerPage) => {
      const { data, pagination } = await pageOrLast(listing(total), { page, itemsPerPage });
      const { limit } = pagination;
      expect(limit).toBe(itemsPerPage > 100 ? 100 * Math.ceil(itemsPerPage / 100) : itemsPerPage);
      const last = Math.max(0, Math.ceil(total / limit) - 1);
      expect(pagination).toEqual({ page: Math.min(page, last), limit, total });
      const first = pagination.page * limit;
      expect(data).toEqual(Array.from({ length: Math.min(limit, total - first) }, (_, at) => first + at));
    }),
  );
});

it('law: all entries of a listing are asked for, each once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(350), async (total) => expect(await allOf(listing(total))).toHaveLength(total)),
  );
});
