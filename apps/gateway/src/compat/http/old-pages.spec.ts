import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { allOf, mostPerPage, pageOfAll, pageOrLast } from './old-pages.js';

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

it('law: of a listing that is here as a whole too, 1000 entries at most are on a page', () => {
  const sizes = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 999, max: 1_000_000_000 }));
  fc.assert(
    fc.property(fc.nat(2_100), fc.nat(12), sizes, (total, page, itemsPerPage) => {
      const all = Array.from({ length: total }, (_, at) => at);
      const { data, pagination } = pageOfAll(all, { page, itemsPerPage });
      const limit = Math.min(itemsPerPage, mostPerPage);
      const last = Math.max(0, Math.ceil(total / limit) - 1);
      expect(pagination).toEqual({ page: Math.min(page, last), limit, total });
      const first = pagination.page * limit;
      expect(data).toEqual(Array.from({ length: Math.min(limit, total - first) }, (_, at) => first + at));
    }),
  );
});
