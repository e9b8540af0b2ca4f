import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assert, asyncProperty, integer, nat } from 'fast-check';
import { billingReports, prices, usage, type UsageEvent } from '@atoll/contracts/billing';
import { newId } from '@atoll/database';
import { BillingFixture, memberOf } from '../billing-fixture.js';
import { expectBill } from './bill-check-fixture.js';
import { Oracle, perNano, type OracleFact } from './oracle-fixture.js';
import { runs } from '@atoll/testing';
import { decimal, draftOf, nanoOf, Scenario } from './scenario-fixture.js';

let billing: BillingFixture;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

/** The nearest 10^-9 at or above the half, of a fraction with any sign. */
function roundHalfUp(numerator: bigint, denominator: bigint): bigint {
  const doubled = 2n * numerator + denominator;
  const quotient = doubled / (2n * denominator);
  return doubled % (2n * denominator) < 0n ? quotient - 1n : quotient;
}

describe('the comparison of two months', () => {
  it('is the difference of their bills, and splits it into price and quantity', async () => {
    await assert(
      asyncProperty(draftOf(), nat({ max: 1 }), async (draft, later) => {
        const scenario = await Scenario.make(billing, draft);
        await scenario.tell();
        await scenario.price();
        const first = new Date(draft.startWall);
        const month = (offset: number) =>
          new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + offset, 1)).toISOString();
        const [from, to] = [month(later), month(later + 1)];
        const asked = { team_id: scenario.team.team_id, start_month: from.slice(0, 7), end_month: to.slice(0, 7) };
        const compared = await billing.call(billingReports.comparison, asked, scenario.caller());
        const billOf = (start: string, end: string) =>
          billing.call(
            billingReports.team,
            { team_id: asked.team_id, start_date: start.slice(0, 19), end_date: end.slice(0, 19), interval: 'monthly' },
            scenario.caller(),
          );
        const [before, after] = [await billOf(from, to), await billOf(to, month(later + 2))];
        expect(compared.start_month).toEqual({
          month: asked.start_month,
          total_cost: before.total_cost,
          items: before.intervals[0]?.items,
        });
        expect(compared.end_month).toEqual({
          month: asked.end_month,
          total_cost: after.total_cost,
          items: after.intervals[0]?.items,
        });
        expect(nanoOf(compared.change.amount)).toBe(nanoOf(after.total_cost) - nanoOf(before.total_cost));
        const exact = (start: string, end: string) =>
          Oracle.of(scenario.facts, scenario.prices, {
            zone: 'UTC',
            interval: 'monthly',
            startMs: Date.parse(start),
            endMs: Date.parse(end),
            asOfMs: Date.parse(compared.as_of),
          });
        const [q0, q1] = [exact(from, to), exact(to, month(later + 2))];
        for (const item of compared.items) {
          const change = nanoOf(item.end_cost) - nanoOf(item.start_cost);
          expect(nanoOf(item.change)).toBe(change);
          expect(nanoOf(item.price_effect) + nanoOf(item.quantity_effect)).toBe(change);
          const isItem = ({ kind, sku }: OracleFact | { kind: string; sku: string }) =>
            kind === item.kind && sku === item.sku;
          const [was, is] = [q0.sum(isItem), q1.sum(isItem)];
          const byQuantity =
            was.heldNanoMs === 0n || is.heldNanoMs === 0n
              ? change
              : roundHalfUp((is.heldNanoMs - was.heldNanoMs) * was.exact, was.heldNanoMs * perNano);
          expect(nanoOf(item.quantity_effect)).toBe(byQuantity);
        }
        expect(compared.items.reduce((sum, { change }) => sum + nanoOf(change), 0n)).toBe(
          nanoOf(compared.change.amount),
        );
      }),
      runs(25),
    );
  });
});

describe('a price set back', () => {
  it('bills as if it had been there from the first', async () => {
    await assert(
      asyncProperty(draftOf(), async (draft) => {
        const early = await Scenario.make(billing, draft);
        await early.price();
        await early.tell();
        const late = await Scenario.make(billing, draft);
        await late.tell();
        const read = async (scenario: Scenario) => {
          const asked = { team_id: scenario.team.team_id, ...scenario.range() };
          const { total_cost, intervals } = await billing.call(billingReports.team, asked, scenario.caller());
          return { total_cost, costs: intervals.map(({ cost }) => cost) };
        };
        await read(late);
        await late.price(late.prices.toReversed());
        expect(await read(late)).toEqual(await read(early));
      }),
      runs(15),
    );
  });
});

describe('what runs now', () => {
  it('is billed up to the moment the bill was asked for, to the millisecond, and never beyond', async () => {
    await assert(
      asyncProperty(integer({ min: 1, max: 3 * 86_400_000 }), async (sinceMs) => {
        const { team_id, workspaces } = await billing.team();
        const sku = `vm-${newId()}`;
        const now = Date.now();
        const fact: UsageEvent = {
          source: 'now',
          id: newId(),
          time: new Date(now - sinceMs).toISOString(),
          resource_id: 'vm:1',
          kind: 'vm',
          sku,
          quantity: '1.5',
          team_id,
          workspace_id: workspaces[0]!.id,
        };
        await billing.call(usage.record, { events: [fact] });
        const valid_from = '2015-01-01T00:00:00Z';
        await billing.call(prices.create, {
          sku,
          unit: 'vm',
          unit_price: decimal(1_000_000_007n),
          valid_from,
          force: true,
        });
        const day = (offset: number) => `${new Date(now + offset * 86_400_000).toISOString().slice(0, 10)}T00:00:00`;
        const asked = { team_id, start_date: day(-4), end_date: day(2), interval: 'daily' as const };
        const report = await billing.call(billingReports.team, asked, memberOf(team_id));
        expect(Date.parse(report.as_of)).toBeGreaterThanOrEqual(now);
        const oracle = Oracle.of(
          [
            {
              source: 'now',
              id: fact.id,
              timeMs: now - sinceMs,
              sequence: 0,
              resource: 'vm:1',
              kind: 'vm',
              sku,
              quantityNano: 1_500_000_000n,
              workspaceId: fact.workspace_id,
              regionId: null,
              poolId: null,
            },
          ],
          [{ sku, ofTeam: false, fromMs: Date.parse(valid_from), priceNano: 1_000_000_007n }],
          {
            zone: 'UTC',
            interval: 'daily',
            startMs: Date.parse(`${asked.start_date}Z`),
            endMs: Date.parse(`${asked.end_date}Z`),
            asOfMs: Date.parse(report.as_of),
          },
        );
        expectBill(report, oracle);
      }),
      runs(10),
    );
  });
});
