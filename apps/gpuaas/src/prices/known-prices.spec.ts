import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { priceChanged, type Price } from '@atoll/contracts/billing';
import { newId } from '@atoll/database';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { GpuaasFixture } from '../gpuaas-fixture.js';
import { KnownPrices } from './known-prices.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

const hour = 3_600_000;
const begunMs = Date.now();
/** Counted from when the specs began: none comes while they run. */
const atHour = (hours: number) => new Date(begunMs + hours * hour).toISOString();

/** A price as it may be told: of a team or general, from some hour on, set at some instant. */
const price = fc.record({
  isOwn: fc.boolean(),
  fromHour: fc.integer({ min: -4, max: 2 }),
  units: fc.integer({ min: 0, max: 99 }),
});

/**
 * What holds by the rule, read off the whole list: the team's own before the general one, then the latest start that is
 * not to come, then what was set last.
 */
function holding(told: readonly Price[], teamId: string): string | undefined {
  const now = new Date().toISOString();
  const counts = told.filter((each) => each.valid_from <= now && (each.team_id === null || each.team_id === teamId));
  const [best] = counts.toSorted(
    (one, other) =>
      Number(one.team_id === null) - Number(other.team_id === null) ||
      other.valid_from.localeCompare(one.valid_from) ||
      other.created_at.localeCompare(one.created_at),
  );
  return best?.unit_price;
}

describe('prices', () => {
  it('law: whatever the order and however often they are told, what holds is the same', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc
          .array(price, { minLength: 1, maxLength: 8 })
          .chain((told) =>
            fc.tuple(
              fc.constant(told),
              fc.array(fc.nat({ max: told.length - 1 }), { maxLength: 4 }),
              fc.infiniteStream(fc.nat()),
            ),
          ),
        async ([made, repeated, chances]) => {
          const [teamId, sku] = [newId(), `gpu.${newId()}`];
          const told = made.map(({ isOwn, fromHour, units }, at) => ({
            price_id: newId(),
            sku,
            unit: 'vgpu',
            unit_price: String(units),
            currency: 'USD',
            team_id: isOwn ? teamId : null,
            valid_from: atHour(fromHour),
            created_at: new Date(Date.now() - 1_000_000 + at).toISOString(),
            replaced_at: null,
          }));
          const tellings = [...told, ...repeated.flatMap((at) => told[at] ?? [])]
            .map((each) => ({ each, chance: chances.next().value }))
            .toSorted((one, other) => one.chance - other.chance);
          for (const { each } of tellings) await fixture.tell(priceChanged, each);
          expect((await fixture.get(KnownPrices).of([sku], teamId)).get(sku)?.unit_price).toBe(holding(told, teamId));
        },
      ),
      runs(40),
    );
  });

  it('of SKUs that have none are left out', async () => {
    expect(await fixture.get(KnownPrices).of(['gpu.none', 'gpu.neither'], newId())).toEqual(new Map());
  });
});
