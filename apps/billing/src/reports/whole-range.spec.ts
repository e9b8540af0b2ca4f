import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Pace, Turns } from '@atoll/waiting';
import { gridOf } from './grid.js';
import { listChanges, readChanges } from './quantity-changes.js';
import { rate } from './rated-usage.js';
import { UnratedLines } from './unrated-usage.js';
import type { Catalogue } from './catalogue.js';
import { rateWhole, sumPrices } from './whole-range.js';

const pace = new Pace(new Turns());
const endMs = 10_000_000;
const instant = fc.integer({ min: 1, max: endMs - 1 });
const price = fc.option(fc.bigInt({ min: 0n, max: 10n ** 18n }), { nil: undefined });
/** From its place on. What is given back is less than before, or nothing. */
const holding = fc.record({
  place: fc.nat(),
  quantityNano: fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 10n ** 18n })),
  share: fc.nat({ max: 100 }),
});

it('law: over a range as a whole the same comes out as by each of its intervals', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(instant, { maxLength: 12 }),
      fc.oneof(fc.constant([]), fc.array(price, { minLength: 13, maxLength: 13 })),
      fc.array(holding, { maxLength: 6 }),
      async (cuts, prices, made) => {
        const grid = await gridOf([0, endMs], cuts, endMs, pace);
        const intervals = grid.lengthsMs.length;
        const byPlace = new Map(made.map((one) => [one.place % intervals, one]));
        let beforeNano = 0n;
        const text = [...byPlace]
          .toSorted(([a], [b]) => a - b)
          .map(([place, { quantityNano, share }]) => {
            const deltaNano = quantityNano - beforeNano;
            beforeNano = quantityNano;
            const atMs = BigInt(Math.floor(((grid.lengthsMs[place] ?? 0) * share) / 101));
            const [units, nano] = [(deltaNano / 10n ** 9n) * atMs, (deltaNano % 10n ** 9n) * atMs];
            return `${place + 1} ${deltaNano} ${units} ${nano}`;
          })
          // The database tells them in any order.
          .toReversed()
          .join(' ');
        const sums = await sumPrices(grid, prices, pace);
        expect(await rateWhole(await listChanges(text, pace), grid, sums, pace)).toEqual(
          await rate(await readChanges(text, intervals, pace), grid, prices, pace),
        );
      },
    ),
  );
});

class Counting extends Pace {
  counted = 0;
  override isFull(items = 1): boolean {
    this.counted += items;
    return false;
  }
}

it('what many resources cost in a range takes as long as they and the changes of their price, not their product', async () => {
  const [resources, changesOfPrice] = [300, 2_000];
  const cuts = Array.from({ length: changesOfPrice }, (_, at) => at + 1);
  const grid = await gridOf([0, endMs], cuts, endMs, pace);
  const prices = new Map([['gpu', { over: () => Promise.resolve(grid.lengthsMs.map(() => 1n)) }]]);
  const by = {
    lines: [{ group: '1', kind: 'gpuaas_pool', sku: 'gpu', unit: 'vgpu' }],
    grid,
    catalogue: { prices } as unknown as Catalogue,
  } as const;
  const held = Array.from({ length: resources }, () => ({ line: 0, changes: '1 1000000000 0 0' }));
  const counting = new Counting(new Turns());
  await new UnratedLines(by, held).rate(counting);
  expect(counting.counted).toBeLessThan(10 * (resources + changesOfPrice));
});
