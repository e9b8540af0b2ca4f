import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Snapshot } from '@atoll/database';
import { allStatementsDuring } from '@atoll/testing';
import { Pace, Turns } from '@atoll/waiting';
import { BillingFixture } from '../billing-fixture.js';
import type { Catalogue } from './catalogue.js';
import { FactDetails } from './fact-details.js';
import { BilledTeam } from './report-fixture.js';
import { UsageReader } from './report-usage.js';

let billing: BillingFixture;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const aDay = { from: '2025-03-10', to: '2025-03-11' };

interface Row {
  line: number;
  resourceId: string | null;
}

/** What a report reads of usage; `most`: as if so many resources were the most that it reads. */
async function rowsRead(report: () => Promise<unknown>, most?: number): Promise<Row[]> {
  const statements = (await allStatementsDuring(report)).filter(({ text }) => text.includes('FROM segment'));
  expect(statements).toHaveLength(1);
  const [{ text, values } = { text: '', values: [] }] = statements;
  return billing.query<Row>(text, most === undefined ? values : [...values.slice(0, -1), most]);
}

const resourcesOf = (rows: readonly Row[]) => rows.flatMap(({ resourceId }) => resourceId ?? []);

describe('a bill', () => {
  it('of a team, of a workspace and by workspace reads nothing of each pod, whatever their number', async () => {
    const team = await BilledTeam.of(billing);
    for (let pod = 0; pod < 20; pod += 1)
      await team.holds('pod', [['2025-03-10', 1]], { kind: 'pod', resource_id: `pod:${pod}` });
    const reports = [() => team.report(aDay), () => team.ofWorkspace('default', aDay), () => team.byWorkspace(aDay)];
    for (const report of reports) expect(await rowsRead(report)).toHaveLength(1);
  });

  it('reads of each resource only what it held before its first price', async () => {
    const team = await BilledTeam.of(billing);
    await team.price('vm', '1', '2025-03-10T12:00:00');
    await team.holds('vm', [['2025-03-10T12:00:00', 1]], { resource_id: 'vm:late' });
    await team.holds('vm', [['2025-03-10T06:00:00', 1]], { resource_id: 'vm:early' });
    await team.holds('metal', [['2025-03-10T18:00:00', 1]], { resource_id: 'baremetal:1', kind: 'baremetal' });
    expect(resourcesOf(await rowsRead(() => team.report(aDay))).toSorted()).toEqual(['baremetal:1', 'vm:early']);
    const { unpriced, total_cost } = await team.report(aDay);
    expect(unpriced.map(({ resource_id, unit_hours }) => [resource_id, unit_hours])).toEqual([
      ['baremetal:1', 6],
      ['vm:early', 6],
    ]);
    expect(total_cost).toBe('24');
  });

  it('reads so many resources at most, the first of the first lines, and all of its lines', async () => {
    const team = await BilledTeam.of(billing);
    for (const kind of ['vm', 'baremetal'] as const)
      for (const no of [2, 1]) await team.holds(kind, [['2025-03-10', no]], { resource_id: `${kind}:${no}`, kind });
    const rows = await rowsRead(() => team.report(aDay), 3);
    expect(resourcesOf(rows)).toEqual(['baremetal:2', 'baremetal:1', 'vm:2']);
    expect(rows).toHaveLength(5);
  });
});

describe('of 200,001 resources', () => {
  const [startMs, endMs] = [Date.UTC(2025, 2, 10), Date.UTC(2025, 2, 11)];
  const series = [{ no: 1, workspaceId: 'w', kind: 'gpuaas_pool' as const, sku: 'gpu', poolId: '1' }];
  const catalogue: Catalogue = {
    asOfMs: endMs,
    teamNo: 1,
    isRegionKnown: true,
    series,
    prices: new Map(),
    units: new Map(),
  };
  const question = { teamNo: 1, catalogue, bounds: [startMs, endMs] };
  const pace = new Pace(new Turns());
  const rows = [
    { line: 0, resourceId: null, changes: '1 1000000000 0 0' },
    ...Array.from({ length: 200_001 }, (_, at) => ({ line: 0, resourceId: `gpuaas_pool:${at}`, changes: '1 1 0 0' })),
  ];
  /** As the database, which gives no more than it is asked for. */
  const database = {
    query: (_text: string, values: unknown[]) => Promise.resolve(rows.slice(0, 1 + Number(values.at(-1)))),
  } as unknown as Snapshot;
  const reader = new UsageReader(database);

  it('a bill still comes, and knows the first 200,000', async () => {
    const { lines, resources } = await reader.byLine(question, pace);
    const rated = [await lines.rate(pace), await resources.rate(pace)];
    expect(rated.map(({ length }) => length)).toEqual([1, 200_000]);
  });

  it('a bill by pool, which shows each, is refused, and says what to narrow', async () => {
    await expect(reader.byLine({ ...question, groupBy: 'poolId' }, pace)).rejects.toMatchObject({
      code: 'invalid_input',
      message:
        'end_date must be earlier: more than 200000 subscriptions to pools are in the range, and at most so many are shown.',
    });
  });
});

it('details of resources are those of each, however many are asked for and in whatever order they are found', async () => {
  const askedInAll: number[] = [];
  /** As the database: by the place of a resource among those that one statement asks for. */
  const database = {
    query: (_text: string, [, ids = []]: readonly string[][]) => {
      askedInAll.push(ids.length);
      return Promise.resolve(ids.map((id, resourceNo) => ({ resourceNo, profile: id, vRamGb: null })).toReversed());
    },
  } as unknown as Snapshot;
  const asked = Array.from({ length: 5_000 }, (_, at) => ({ id: `w ${at}`, resourceId: `gpuaas_pool:${at}` }));
  const found = await new FactDetails(database).subscriptions(1, asked, new Pace(new Turns()));
  expect(askedInAll.length).toBeGreaterThan(1);
  expect(asked.map(({ id }) => found.get(id)?.profile)).toEqual(asked.map(({ resourceId }) => resourceId));
});
