import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { billingReports, usage, type UsageEvent } from '@atoll/contracts/billing';
import { BillingFixture, memberOf } from '../billing-fixture.js';

let billing: BillingFixture;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const dayMs = 86_400_000;
const startMs = Date.UTC(2025, 2, 10);
const text = fc.constantFrom('a', 'b', 'é');
const size = fc.constantFrom(0, 1, 2.5, 100);
/** Attributes may have any type; those of another type than expected count as absent. */
const attributes = fc.record(
  {
    pool_name: fc.oneof(text, fc.boolean()),
    pool_profiles: fc.oneof(fc.nat(3), text),
    profile: fc.oneof(text, size),
    v_ram_gb: fc.oneof(size, text),
    used_size_in_gb: fc.oneof(size, text),
  },
  { requiredKeys: [] },
);
const fact: fc.Arbitrary<Omit<Fact, 'id'>> = fc.record({
  // Ten days around the one that is billed: most facts lie outside of it, and many share an instant.
  day: fc.integer({ min: -5, max: 5 }),
  sequence: fc.nat(1),
  source: fc.constantFrom('a', 'B', 'é'),
  resource: fc.nat(2),
  sku: fc.nat(1),
  pool: fc.nat(1),
  region: fc.nat(1),
  isHeld: fc.boolean(),
  name: fc.option(fc.constantFrom('x', 'y'), { nil: undefined }),
  attributes: fc.option(attributes, { nil: undefined }),
});

interface Fact {
  id: string;
  day: number;
  sequence: number;
  source: string;
  resource: number;
  sku: number;
  pool: number;
  region: number;
  isHeld: boolean;
  name: string | undefined;
  attributes: UsageEvent['attributes'];
}

const byTime = (one: Fact, other: Fact) =>
  other.day - one.day ||
  other.sequence - one.sequence ||
  Buffer.compare(Buffer.from(other.source), Buffer.from(one.source)) ||
  Buffer.compare(Buffer.from(other.id), Buffer.from(one.id));

/** The latest value that a fact has, by the whole list. */
function latest<T>(facts: readonly Fact[], valueOf: (fact: Fact) => T | undefined): T | null {
  return (
    facts
      .toSorted(byTime)
      .map(valueOf)
      .find((value) => value !== undefined) ?? null
  );
}
const textOf = (name: 'pool_name' | 'profile') => (one: Fact) => {
  const value = one.attributes?.[name];
  return typeof value === 'string' ? value : undefined;
};
const numberOf = (name: 'v_ram_gb' | 'used_size_in_gb') => (one: Fact) => {
  const value = one.attributes?.[name];
  return typeof value === 'number' ? value : undefined;
};

const asked = {
  start_date: '2025-03-10T00:00:00',
  end_date: '2025-03-11T00:00:00',
  interval: 'daily' as const,
  region_id: 'all',
};

let sequence = 0;
/** Records the facts in any batches, for a team of its own and beside another team with the same ids. */
async function record(facts: readonly Fact[], kind: 'gpuaas_pool' | 'shared_storage', chunk: number) {
  const run = `${process.pid}-${(sequence += 1)}`;
  const team = await billing.team();
  const other = await billing.team();
  const eventOf = (one: Fact, { team_id, workspaces }: typeof team): UsageEvent => ({
    source: one.source,
    id: `${run} ${team_id} ${one.id}`,
    time: new Date(startMs + one.day * dayMs).toISOString(),
    sequence: one.sequence,
    resource_id: `${kind}:${one.resource}`,
    kind,
    sku: `gpu.board.p${one.sku}`,
    quantity: one.isHeld ? '1' : '0',
    team_id,
    workspace_id: workspaces[0]!.id,
    ...(kind === 'gpuaas_pool' && { pool_id: String(one.pool + 1) }),
    ...(one.region > 0 && { region_id: String(one.region) }),
    ...(one.name && { resource_name: one.name }),
    ...(one.attributes && { attributes: one.attributes }),
  });
  const alien = facts.map((one) => ({ ...one, attributes: { pool_name: 'alien', pool_profiles: 9 }, name: 'alien' }));
  const events = [...facts.map((one) => eventOf(one, team)), ...alien.map((one) => eventOf(one, other))];
  for (let at = 0; at < events.length; at += chunk)
    await billing.call(usage.record, { events: events.slice(at, at + chunk) });
  return { team_id: team.team_id, caller: memberOf(team.team_id) };
}

const facts = fc
  .array(fact, { minLength: 1, maxLength: 12 })
  .map((drawn): Fact[] => drawn.map((one, at) => ({ ...one, id: String(at).padStart(2, '0') })));

describe('what a report shows besides quantities', () => {
  it('is of each pool and subscription what the latest of the team’s facts has, whatever the range and the order', async () => {
    await fc.assert(
      fc.asyncProperty(facts, fc.integer({ min: 1, max: 12 }), async (drawn, chunk) => {
        const { team_id, caller } = await record(drawn, 'gpuaas_pool', chunk);
        const { pools } = await billing.call(billingReports.pools, { ...asked, team_id }, caller);
        for (const pool of pools) {
          const ofPool = drawn.filter((one) => String(one.pool + 1) === pool.pool_id);
          const naming = ofPool.filter((one) => typeof one.attributes?.pool_name === 'string').toSorted(byTime)[0];
          expect(pool.pool_name).toBe(naming?.attributes?.pool_name ?? null);
          const sold = naming?.attributes?.pool_profiles;
          const sellsSeveral = new Set(ofPool.map(({ sku }) => sku)).size > 1 || (typeof sold === 'number' && sold > 1);
          const sizes = new Set(pool.subscriptions.flatMap(({ v_ram_gb }) => v_ram_gb ?? []));
          expect(pool.v_ram_gb).toBe(sellsSeveral || sizes.size > 1 ? null : ([...sizes][0] ?? null));
          expect(pool.region_id).toBe(ofPool.some(({ region }) => region > 0) ? '1' : null);
          for (const { subscription_id, v_ram_gb, profile } of pool.subscriptions) {
            const ofIt = ofPool.filter((one) => String(one.resource) === subscription_id);
            expect(v_ram_gb).toBe(latest(ofIt, numberOf('v_ram_gb')));
            const told = latest(ofIt, textOf('profile'));
            if (told !== null) expect(profile).toBe(told);
            else expect(profile).toMatch(/^p[01]$/);
          }
        }
      }),
      runs(40),
    );
  });

  it('is of each volume what the latest of the team’s facts has, whatever the range and the order', async () => {
    await fc.assert(
      fc.asyncProperty(facts, fc.integer({ min: 1, max: 12 }), async (drawn, chunk) => {
        const { team_id, caller } = await record(drawn, 'shared_storage', chunk);
        const { volumes } = await billing.call(billingReports.storage, { ...asked, team_id }, caller);
        for (const volume of volumes) {
          const ofIt = drawn.filter((one) => String(one.resource) === volume.volume_id);
          expect(volume.name).toBe(latest(ofIt, ({ name }) => name));
          expect(volume.used_size_in_gb).toBe(latest(ofIt, numberOf('used_size_in_gb')));
          expect(volume.region_id).toBe(latest(ofIt, ({ region }) => (region > 0 ? String(region) : undefined)));
        }
      }),
      runs(40),
    );
  });
});
