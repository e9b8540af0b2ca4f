import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { allOf, mostPerPage, pageOfAll, pageOrLast } from './old-pages.js';

const idOf = String;
const upTo = (total: number) => Array.from({ length: total }, (_, at) => at);

/** A listing in pages counted from 0 of 100 at most, of a billion pages at most. */
const listing = (entries: () => number[]) => (page: number, limit: number) => {
  expect(limit).toBeLessThanOrEqual(100);
  expect(page).toBeLessThan(1_000_000_000);
  const all = entries();
  const data = all.slice(page * limit, (page + 1) * limit);
  return Promise.resolve({ data, pagination: { page, limit, total: all.length } });
};

/** A listing that loses the entries at these places, and gains some at its end, before each ask but the first. */
function changing(total: number, changes: readonly { lost: readonly number[]; gained: number }[]) {
  let [entries, next, asks] = [upTo(total), total, 0];
  const gone = new Set<number>();
  return {
    ask: listing(() => {
      const { lost, gained } = changes[asks - 1] ?? { lost: [], gained: 0 };
      const leaving = new Set(lost.flatMap((at) => entries[at] ?? []));
      for (const entry of leaving) gone.add(entry);
      entries = [...entries.filter((entry) => !leaving.has(entry)), ...upTo(gained).map((at) => next + at)];
      [next, asks] = [next + gained, asks + 1];
      return entries;
    }),
    /** The first ones that are still there. */
    lasting: () => upTo(total).filter((entry) => !gone.has(entry)),
  };
}

function expectOnce(read: readonly number[], lasting: readonly number[]): void {
  expect(new Set(read).size).toBe(read.length);
  const kept = new Set(lasting);
  expect(read.filter((entry) => kept.has(entry))).toEqual(lasting);
}

const manyChanges = fc.array(
  fc.record({ lost: fc.uniqueArray(fc.nat(450), { maxLength: 120 }), gained: fc.nat(150) }),
  { maxLength: 15 },
);

describe('a page', () => {
  const sizes = fc.oneof(
    fc.integer({ min: 1, max: 350 }),
    fc.integer({ min: 900, max: 1_100 }),
    fc.constant(1_000_000_000),
  );
  const pages = fc.oneof(fc.nat(12), fc.constant(1_000_000_000));

  it('law: holds exactly its entries, a thousand at most, and one behind the last is the last that has any', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(2_100), pages, sizes, async (total, page, itemsPerPage) => {
        const asked = { page, itemsPerPage };
        const { data, pagination } = await pageOrLast(
          listing(() => upTo(total)),
          idOf,
          asked,
        );
        const limit = Math.min(itemsPerPage, mostPerPage);
        const last = Math.max(0, Math.ceil(total / limit) - 1);
        expect(pagination).toEqual({ page: Math.min(page, last), limit, total });
        expect(data).toEqual(upTo(total).slice(pagination.page * limit, (pagination.page + 1) * limit));
        expect(pageOfAll(upTo(total), asked)).toEqual({ data, pagination });
      }),
    );
  });

  it('law: of a listing that fits on it has each entry once that is there all the time, whatever comes and goes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(450), manyChanges, async (total, changes) => {
        const { ask, lasting } = changing(total, changes);
        const { data } = await pageOrLast(ask, idOf, { itemsPerPage: 1_000 });
        expectOnce(data, lasting());
      }),
    );
  });
});

describe('a whole listing', () => {
  it('law: has all entries in their order, each once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(350), async (total) =>
        expect(
          await allOf(
            listing(() => upTo(total)),
            idOf,
          ),
        ).toEqual(upTo(total)),
      ),
    );
  });

  it('law: has each entry once that is there all the time, whatever is deleted and added between its asks', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(450), manyChanges, async (total, changes) => {
        const { ask, lasting } = changing(total, changes);
        const all = await allOf(ask, idOf);
        expectOnce(all, lasting());
      }),
    );
  });
});
