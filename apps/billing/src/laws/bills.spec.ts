import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assert, asyncProperty, constantFrom, nat, shuffledSubarray } from 'fast-check';
import { billingReports, instanceReports, type BillingReport } from '@atoll/contracts/billing';
import { BillingFixture } from '../billing-fixture.js';
import { expectBill, expectGroupedBill } from './bill-check-fixture.js';
import { instantOf } from './local-time-fixture.js';
import { halfUp, Oracle } from './oracle-fixture.js';
import { runs } from '@atoll/testing';
import { draftOf, nanoOf, Scenario, wallOf, type Draft } from './scenario-fixture.js';

let billing: BillingFixture;
let zones: string[];
beforeAll(async () => {
  billing = await BillingFixture.start();
  const rows = await billing.query<{ name: string }>(`SELECT name FROM pg_timezone_names ORDER BY name`);
  zones = rows.map(({ name }) => name).filter(isKnownToIntl);
});
afterAll(() => billing.stop());

function isKnownToIntl(name: string): boolean {
  try {
    Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Any zone that Intl and PostgreSQL both know. */
const aZone = nat().map((at) => zones[at % zones.length]!);

function oracleOf({ facts, prices, zone, draft }: Scenario, asOf: string, interval = draft.interval): Oracle {
  const { startWall, lengthSeconds } = draft;
  const startMs = instantOf(zone, startWall);
  const endMs = instantOf(zone, startWall + lengthSeconds * 1000);
  return Oracle.of(facts, prices, { zone, interval, startMs, endMs, asOfMs: Date.parse(asOf) });
}

async function expectEveryBill(scenario: Scenario): Promise<void> {
  const { team, draft } = scenario;
  const asked = { team_id: team.team_id, ...scenario.range() };
  const caller = scenario.caller();
  const whole = await billing.call(billingReports.team, asked, caller);
  const oracle = oracleOf(scenario, whole.as_of);
  expectBill(whole, oracle);
  const byWorkspace = await billing.call(billingReports.byWorkspace, asked, caller);
  expectGroupedBill(
    byWorkspace,
    byWorkspace.workspaces,
    oracle,
    ({ workspaceId }) => workspaceId,
    ({ workspace_id }) => workspace_id,
  );
  const [, workspace] = team.workspaces;
  const ofWorkspace = await billing.call(
    billingReports.workspace,
    { workspace_id: workspace!.id, ...scenario.range() },
    caller,
  );
  expectBill(
    ofWorkspace,
    oracle.where(({ workspaceId }) => workspaceId === workspace!.id),
  );
  await expectInstances(scenario, oracle, asked);
  const known = draft.facts.some(({ region }) => region === 1);
  for (const region_id of known ? ['all', '1'] : ['all']) {
    const inRegion = oracle.where(({ regionId }) => region_id === 'all' || regionId === region_id);
    const pools = await billing.call(billingReports.pools, { ...asked, region_id }, caller);
    const ofPools = inRegion.where(({ kind }) => kind === 'gpuaas_pool');
    expectGroupedBill(
      pools,
      pools.pools,
      ofPools,
      ({ poolId }) => poolId ?? '',
      ({ pool_id }) => pool_id,
    );
    for (const { total_cost, subscriptions } of pools.pools) {
      expect(subscriptions.reduce((sum, { total_cost: cost }) => sum + nanoOf(cost), 0n)).toBe(nanoOf(total_cost));
    }
    const { pools: rated } = await billing.call(billingReports.ratedPools, { ...asked, region_id }, caller);
    const meanOf = (id: string) => ofPools.where(({ poolId }) => (poolId ?? '') === id).sum();
    for (const { pool_id, vgpu_hour_cost } of rated) {
      const { exact, heldNanoMs } = meanOf(pool_id);
      expect([pool_id, nanoOf(vgpu_hour_cost)]).toEqual([pool_id, halfUp(exact, heldNanoMs)]);
    }
    const storage = await billing.call(billingReports.storage, { ...asked, region_id }, caller);
    const ofStorage = inRegion.where(({ kind }) => kind === 'shared_storage');
    expectGroupedBill(
      storage,
      storage.volumes,
      ofStorage,
      ({ resource }) => resource,
      ({ volume_id }) => `shared_storage:${volume_id}`,
    );
  }
}

/**
 * Pods, VMs and hosts by themselves; and with pools and storage they come to the team's bill, but for what each of the
 * three is rounded by.
 */
async function expectInstances(
  scenario: Scenario,
  oracle: Oracle,
  asked: { team_id: string } & ReturnType<Scenario['range']>,
): Promise<void> {
  const caller = scenario.caller();
  const isInstance = ({ kind }: { kind: string }) => kind === 'vm';
  const ofTeam = await billing.call(instanceReports.ofTeam, asked, caller);
  expectGroupedBill(
    ofTeam,
    ofTeam.instances,
    oracle.where(isInstance),
    ({ workspaceId, resource }) => `${workspaceId} ${resource}`,
    ({ workspace_id, instance_id, kind }) => `${workspace_id} ${kind}:${instance_id}`,
  );
  const [, workspace] = scenario.team.workspaces;
  const ofWorkspace = await billing.call(
    instanceReports.ofWorkspace,
    { workspace_id: workspace!.id, ...scenario.range() },
    caller,
  );
  expectGroupedBill(
    ofWorkspace,
    ofWorkspace.instances,
    oracle.where((piece) => isInstance(piece) && piece.workspaceId === workspace!.id),
    ({ resource }) => resource,
    ({ instance_id, kind }) => `${kind}:${instance_id}`,
  );
  const everywhere = { ...asked, region_id: 'all' };
  const parts = [
    ofTeam,
    await billing.call(billingReports.pools, everywhere, caller),
    await billing.call(billingReports.storage, everywhere, caller),
  ];
  const { total_cost } = await billing.call(billingReports.team, asked, caller);
  const apart = parts.reduce((sum, part) => sum + nanoOf(part.total_cost), 0n) - nanoOf(total_cost);
  expect(apart >= -2n && apart <= 2n).toBe(true);
}

async function tellAll(draft: Draft, zone: string): Promise<Scenario> {
  const scenario = await Scenario.make(billing, draft, zone);
  await scenario.tell();
  await scenario.price();
  return scenario;
}

const withoutTime = ({ as_of: _asOf, ...report }: BillingReport) => report;
const readTeam = (scenario: Scenario, range: object = scenario.range(), zone = scenario.zone) =>
  billing.call(
    billingReports.team,
    { team_id: scenario.team.team_id, ...scenario.range(), ...range },
    scenario.caller(zone),
  );

describe('every bill', () => {
  it('is the exact integral of quantity × price in any zone, rounded once down one tree, so that what is shown adds up', async () => {
    await assert(
      asyncProperty(draftOf(), aZone, async (draft, zone) => expectEveryBill(await tellAll(draft, zone))),
      runs(40),
    );
  });

  // Each around a change of its clocks, in the years that bills are of.
  it.each([
    ['Asia/Kathmandu', '2025-10-01T18:15:00Z'],
    ['Asia/Kolkata', '2025-10-01T18:30:00Z'],
    ['Australia/Lord_Howe', '2025-10-04T15:30:00Z'],
    ['Australia/Lord_Howe', '2026-04-04T15:00:00Z'],
    ['Africa/Cairo', '2025-04-24T22:00:00Z'],
    ['Africa/Cairo', '2025-10-30T21:00:00Z'],
    ['America/St_Johns', '2025-11-02T04:30:00Z'],
    ['Pacific/Chatham', '2025-09-27T14:00:00Z'],
    ['America/Los_Angeles', '2025-11-02T09:00:00Z'],
    ['America/Los_Angeles', '2026-03-08T10:00:00Z'],
    ['Africa/Casablanca', '2026-02-15T02:00:00Z'],
    ['Asia/Beirut', '2025-03-29T22:00:00Z'],
    ['Pacific/Apia', '2020-09-26T14:00:00Z'],
  ])('is exact in %s around %s', async (zone, transition) => {
    await assert(
      asyncProperty(draftOf(Date.parse(transition)), async (draft) => expectEveryBill(await tellAll(draft, zone))),
      runs(3),
    );
  });

  it('is the same for the same facts, whatever the order, the repetitions and the batches they come in, also after it was read', async () => {
    await assert(
      asyncProperty(draftOf(), aZone, nat({ max: 6 }), async (draft, zone, turn) => {
        const scenario = await Scenario.make(billing, draft, zone);
        const { facts, prices } = scenario;
        const late = facts.filter((_fact, index) => index % 2 === turn % 2);
        await scenario.tell(facts.filter((fact) => !late.includes(fact)).toReversed());
        await scenario.price(prices.slice(0, turn));
        await readTeam(scenario);
        for (const fact of late) await scenario.tell([fact]);
        await scenario.tell([...facts.slice(turn), ...facts.slice(0, turn)]);
        await scenario.price(prices.slice(turn));
        await expectEveryBill(scenario);
      }),
      runs(15),
    );
  });

  it('says of two teams with the same facts the same in every field but the time it was asked', async () => {
    await assert(
      asyncProperty(draftOf(), aZone, constantFrom(1, 3, 14), async (draft, zone, size) => {
        const scenario = await tellAll(draft, zone);
        const first = await readTeam(scenario);
        for (let at = 0; at < scenario.facts.length; at += size)
          await scenario.tell(scenario.facts.slice(at, at + size));
        expect(withoutTime(await readTeam(scenario))).toEqual(withoutTime(first));
      }),
      runs(10),
    );
  });
});

describe('bills of one team', () => {
  it('of two ranges that meet come to that of both together', async () => {
    await assert(
      asyncProperty(draftOf(), aZone, nat({ max: 1000 }), async (draft, zone, part) => {
        const scenario = await tellAll(draft, zone);
        const { start_date, end_date } = scenario.range();
        const middle = new Date(draft.startWall + Math.max(1, Math.floor((draft.lengthSeconds * part) / 1001)) * 1000);
        const cut = middle.toISOString().slice(0, 19);
        if (instantOf(zone, middle.getTime()) === instantOf(zone, draft.startWall)) return;
        const parts = [
          await readTeam(scenario, { start_date, end_date: cut }),
          await readTeam(scenario, { start_date: cut, end_date }),
        ];
        const whole = await readTeam(scenario);
        const apart = nanoOf(whole.total_cost) - parts.reduce((sum, { total_cost }) => sum + nanoOf(total_cost), 0n);
        expect(apart >= -1n && apart <= 1n).toBe(true);
      }),
      runs(15),
    );
  });

  it('by hour nest in those by day, and days in weeks and months: one total, and the parts come to the whole', async () => {
    await assert(
      asyncProperty(
        draftOf(),
        aZone,
        shuffledSubarray(['monthly', 'weekly'] as const, { minLength: 1 }),
        async (draft, zone, coarser) => {
          const short = { ...draft, lengthSeconds: Math.min(draft.lengthSeconds, 20 * 86_400) };
          const scenario = await tellAll(short, zone);
          const byHour = await readTeam(scenario, { interval: 'hourly' });
          const byDay = await readTeam(scenario, { interval: 'daily' });
          expectNested(byHour, byDay);
          for (const interval of coarser) expectNested(byDay, await readTeam(scenario, { interval }));
        },
      ),
      runs(10),
    );
  });

  it('for the same instants have one total in every zone', async () => {
    await assert(
      asyncProperty(draftOf(), aZone, aZone, async (draft, zone, other) => {
        const scenario = await tellAll(draft, zone);
        const here = await readTeam(scenario);
        const [start, end] = [Date.parse(here.start), Date.parse(here.end)];
        const [start_date, end_date] = [wallOf(other, start), wallOf(other, end)];
        // A time that the other zone's clocks show twice stands for the earlier one.
        if (
          instantOf(other, Date.parse(`${start_date}Z`)) !== start ||
          instantOf(other, Date.parse(`${end_date}Z`)) !== end
        )
          return;
        const there = await readTeam(scenario, { start_date, end_date }, other);
        expect([there.total_cost, there.unpriced]).toEqual([here.total_cost, here.unpriced]);
      }),
      runs(15),
    );
  });
});

function expectNested(fine: BillingReport, coarse: BillingReport): void {
  expect(fine.total_cost).toBe(coarse.total_cost);
  for (const { start, end, cost } of coarse.intervals) {
    const inside = fine.intervals.filter(
      (part) => Date.parse(part.start) >= Date.parse(start) && Date.parse(part.end) <= Date.parse(end),
    );
    expect([inside.at(0)?.start, inside.at(-1)?.end]).toEqual([start, end]);
    const apart = nanoOf(cost) - inside.reduce((sum, part) => sum + nanoOf(part.cost), 0n);
    const most = BigInt(inside.length + 1);
    expect(apart <= most && apart >= -most).toBe(true);
  }
}
