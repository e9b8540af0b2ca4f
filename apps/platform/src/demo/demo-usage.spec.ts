import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { runs } from '@atoll/testing';
import type { DemoApi } from './demo-api.js';
import { tellUsage } from './demo-usage.js';

interface Fact {
  id: string;
  time: string;
  resource_id: string;
  quantity: number;
}

async function factsAt(nowMs: number): Promise<Fact[]> {
  const told: Fact[] = [];
  const api = { post: (_path: string, { events }: { events: Fact[] }) => Promise.resolve(told.push(...events)) };
  await tellUsage(api as unknown as DemoApi, [], new Map(), nowMs);
  return told;
}

it('law: whenever the demo is loaded, no two of its facts have one id, none is of the future, and all that is held ends', async () => {
  const firstMs = Date.parse('2026-01-01T00:00:00Z');
  // Often within the first minute of an hour, in which facts and the end of all meet.
  const instant = fc.tuple(fc.nat({ max: 24 * 365 }), fc.oneof(fc.nat({ max: 60_000 }), fc.nat({ max: 3_599_999 })));
  await fc.assert(
    fc.asyncProperty(instant, async ([hours, ms]) => {
      const nowMs = firstMs + hours * 3_600_000 + ms;
      const facts = await factsAt(nowMs);
      expect(new Set(facts.map(({ id }) => id)).size).toBe(facts.length);
      expect(facts.filter(({ time }) => Date.parse(time) > nowMs)).toEqual([]);
      const last = new Map(facts.map((fact) => [fact.resource_id, fact.quantity]));
      expect([...last.values()].filter((quantity) => quantity !== 0)).toEqual([]);
    }),
    { ...runs(60), examples: [[[24 * 330, 12_345]]] },
  );
});
