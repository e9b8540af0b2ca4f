import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { array, assert, bigInt, constantFrom, property, record } from 'fast-check';
import { billingReports, instanceReports, type BilledInstance, type BillingBucket } from '@atoll/contracts/billing';
import { invalidField } from '@atoll/errors';
import { teamId } from '../../testing/team-fixture.js';
import { startCompat, type CompatUnderTest } from '../testing/compat-fixture.js';
import { aBilledPool, aReport, bucket, days, item } from '../testing/reports-fixture.js';
import { exactNumber, nanoOf } from '../http/exact.js';
import { endOf, endOfDay, startOf } from './old-range.js';
import { symbolOf, uniqueNames, usedByInterval } from './reports.js';

const workspaceId = '01890000-0000-7000-8000-0000000000bb';
const range = '2026-10-01T00:00/2026-10-31T23:59';

let compat: CompatUnderTest;
let key: string;
beforeAll(async () => {
  compat = await startCompat();
  key = compat.gateway.services.key();
});
afterAll(() => compat.close());

const anInstance = (instance_id: string, total_cost: string, intervals: BillingBucket[] = []): BilledInstance => ({
  instance_id,
  kind: 'vm',
  name: null,
  workspace_id: workspaceId,
  workspace_name: 'default',
  unit_hours: 24,
  total_cost,
  intervals,
});

const as_of = '2026-11-02T00:00:00.001Z';

beforeEach(() => {
  const { services } = compat.gateway;
  services.answer(billingReports.now, () => ({ as_of }));
  services.answer(billingReports.team, () =>
    aReport('9007199254740993.000000001', [
      bucket('2026-10-01T00:00:00Z', '5', item(48, '3'), item(240, '2', 'shared_storage', 'storage.shared')),
    ]),
  );
  services.answer(billingReports.workspace, () => aReport('1'));
  services.answer(instanceReports.ofTeam, () => ({
    ...aReport('0.3'),
    instances: [anInstance('a', '0.1', days), anInstance('b', '0.2')],
  }));
  services.answer(instanceReports.ofWorkspace, () => ({ ...aReport('0.1'), instances: [anInstance('a', '0.1')] }));
  const pools = [aBilledPool('1', 'a100', '1.5', days), aBilledPool('2', 'a100', '0'), aBilledPool('3', null, '0')];
  services.answer(billingReports.pools, () => ({ ...aReport('1.5', days), pools }));
  services.answer(billingReports.ratedPools, () => ({ ...aReport('1.5', days), pools }));
  const volume = {
    volume_id: '7',
    name: 'data',
    region_id: '1',
    used_size_in_gb: null,
    gb_hours: 240,
    total_cost: '1.5',
    intervals: days,
  };
  services.answer(billingReports.storage, () => ({
    ...aReport('1.5'),
    volumes: [volume, { ...volume, volume_id: '8', name: '__proto__' }],
  }));
});

/** The body as it was sent: a float would not show whether the digits are all there. */
const textOf = async (url: string): Promise<string> =>
  (await compat.app.inject({ url, headers: { 'x-api-key': key } })).payload;
const read = async (url: string) =>
  (await compat.call<Record<string, never>>('GET', url, { key })).body as Record<string, unknown>;
const asked = (operation: { subject: string }) => compat.gateway.services.callsOf(operation).at(-1)?.input;

describe('an old bill', () => {
  it('has the exact decimal as a number, the hours of everything but storage, and instances', async () => {
    const url = `/api/team-billing/${teamId}/${range}/hourly?timezone=LOCAL`;
    expect(await read(url)).toMatchObject({
      total_hours: 48,
      currency: 'USD',
      instances: [{ instance_id: 'a', instance_name: 'a', hours: 24, cost: 0.1 }, {}],
    });
    expect(await textOf(url)).toContain('"total_cost":9007199254740993.000000001,');
    expect(asked(billingReports.team)).toEqual({
      team_id: teamId,
      start_date: '2026-10-01T00:00:00',
      end_date: '2026-11-01T00:00:00',
      interval: 'monthly',
      timezone: 'local',
      as_of,
    });
    expect(await read(`/api/workspace-billing/${workspaceId}/2026-10-01/2026-11-01/Daily`)).toMatchObject({
      total_cost: 1,
      instances: [{ cost: 0.1 }],
    });
  });

  it.each<[string, string, { subject: string }[]]>([
    ['of a team', `team-billing/${teamId}/${range}/daily`, [billingReports.team, instanceReports.ofTeam]],
    [
      'of a workspace',
      `workspace-billing/${workspaceId}/${range}/daily`,
      [billingReports.workspace, instanceReports.ofWorkspace],
    ],
    [
      'by kind',
      `team-billing/summary/${teamId}/${range}`,
      [instanceReports.ofTeam, billingReports.ratedPools, billingReports.storage],
    ],
    [
      'by workspace',
      `team-billing/group-by-workspace/${teamId}/${range}/daily`,
      [billingReports.team, instanceReports.ofTeam],
    ],
  ])('%s is made of reports up to one instant, which is that of the billing service', async (_, path, parts) => {
    await read(`/api/${path}`);
    expect(parts.map(asked)).toEqual(parts.map(() => expect.objectContaining({ as_of })));
  });

  it('by kind adds up to its total', async () => {
    const summary = await read(`/api/team-billing/summary/${teamId}/${range}`);
    expect(summary).toMatchObject({
      total_cost: 3.3,
      pool_hours: 144,
      instance_hours: 48,
      total_hours: 192,
      monthly_base_cost: 0,
    });
    expect(summary.currency).toEqual({ code: 'USD', symbol: '$' });
    expect(summary.gpuaas_summary).toMatchObject([
      { pool_name: 'a100 (1)', pool_hours: 48, total: 1.5, subscription_rate: 0.031250001 },
      { pool_name: 'a100 (2)' },
      { pool_name: 'Pool 3', pool_hours: 48 },
    ]);
  });

  it('by workspace has instances alone, and the cost of the range asked for', async () => {
    const url = `/api/team-billing/group-by-workspace/${teamId}/2026-10-01T00%3A00%3A00/2026-10-01T01:00:00/daily`;
    const bill = await read(url);
    const { a } =
      (bill.billing_by_workspace as Record<string, { instances: Record<string, object> }>)[workspaceId]?.instances ??
      {};
    expect(a).toMatchObject({
      total_cost: 0.1,
      intervals: { '2026-10-01': { Resources: { 'Subscription Rate': { cost: 1.5 }, CPU: { cost: 0 } } } },
    });
    expect(await textOf(url)).toContain('"current_month_total_cost":9007199254740993.000000001');
    expect(await textOf(url)).not.toMatch(/a100|data|team_metrics|gpuaas_billing_by_pool|pci_devices/);
    expect(asked(instanceReports.ofTeam)).toMatchObject({
      start_date: '2026-10-01T00:00:00',
      end_date: '2026-10-01T01:00:00',
      interval: 'daily',
    });
  });

  it('of pools and of volumes has each by a name of its own and by interval, also where the price is 0', async () => {
    const pools = await read(`/api/team-billing/gpuaas-pool/${teamId}/${range}/daily?region_id=7&more=1`);
    expect(asked(billingReports.pools)).toMatchObject({ region_id: '7', interval: 'daily' });
    expect(Object.keys(pools.details as object)).toEqual(['a100 (1)', 'a100 (2)', 'Pool 3']);
    expect((pools.details as Record<string, object>)['a100 (1)']).toMatchObject({
      model_type: 'A100-80GB',
      vendor_type: 'NVIDIA',
      intervals: {
        '2026-10-01': {
          interval_cost: 1.5,
          interval_hours: 24,
          SubscriptionRate: { cost: 1.5 },
          EphimeralStorage: { cost: 0 },
        },
        '2026-10-03': { interval_cost: 0, interval_hours: 24 },
      },
    });
    const storage = await textOf(`/api/team-billing/shared-storage/${teamId}/${range}/daily?region_id=all`);
    expect(storage).toBe(
      '{"total_cost":1.5,"details":{"data":{"2026-10-01":{"cost":1.5,"hours":24},"2026-10-03":{"cost":0,"hours":24}},' +
        '"__proto__":{"2026-10-01":{"cost":1.5,"hours":24},"2026-10-03":{"cost":0,"hours":24}}}}',
    );
  });

  it.each(['weeekly', '', '7'])('is refused by the interval %s', async (interval) => {
    const answer = await compat.app.inject({
      url: `/api/team-billing/${teamId}/${range}/${interval}`,
      headers: { 'x-api-key': key },
    });
    expect([400, 501]).toContain(answer.statusCode);
  });

  it.each(['2026-10', '2026-10-01T', '2026-10-01T25', 'yesterday', '2026-10-01T00:00:00Z', '1790000000'])(
    'is refused from %s',
    async (start) => {
      const answer = await compat.call('GET', `/api/team-billing/${teamId}/${start}/2026-11-01/daily`, { key });
      expect(answer).toMatchObject({
        status: 400,
        body: { errors: [{ field: 'start_date', message: expect.stringContaining('YYYY-MM-DDTHH:MM') }] },
      });
    },
  );

  it.each(['timezone=Asia/Tokyo', 'region_id=x', 'region_id=-1'])('is refused with %s', async (query) => {
    expect(
      (await compat.call('GET', `/api/team-billing/shared-storage/${teamId}/${range}/daily?${query}`, { key })).status,
    ).toBe(400);
  });

  it('of the hour that clocks skip is empty, as that of an hour in which there was nothing', async () => {
    compat.gateway.services.answer(billingReports.storage, ({ start_date }) => {
      if (start_date >= '2001') throw invalidField('end_date', 'skippedByClocks', 'must be later than start_date');
      return { ...aReport('0'), volumes: [] };
    });
    const url = `/api/team-billing/shared-storage/${teamId}/2026-03-29T02:00/2026-03-29T02:59/hourly?timezone=local`;
    expect(await read(url)).toEqual({ total_cost: 0, details: {} });
  });

  it('that is too long to be read here is refused, and says what helps', async () => {
    const many = Array.from({ length: 40_000 }, () => days[0]!);
    compat.gateway.services.answer(billingReports.storage, () => ({ ...aReport('1.5', many), volumes: [] }));
    const answer = await compat.call('GET', `/api/team-billing/shared-storage/${teamId}/${range}/hourly`, { key });
    expect(answer).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('longer than the 4 MiB'), errors: [] },
    });
  });
});

describe('dates', () => {
  it.each([
    ['2026-10-31', '2026-10-31T00:00:00', '2026-10-31T00:00:00', '2026-11-01T00:00:00'],
    ['2026-10-31T23:59', '2026-10-31T23:59:00', '2026-11-01T00:00:00', '2026-11-01T00:00:00'],
    ['2026-12-31T23:59', '2026-12-31T23:59:00', '2027-01-01T00:00:00', '2027-01-01T00:00:00'],
    ['2026-10-31T23:59:59', '2026-10-31T23:59:59', '2026-10-31T23:59:59', '2026-10-31T23:59:59'],
    ['2026-10-31T12:30', '2026-10-31T12:30:00', '2026-10-31T12:30:00', '2026-10-31T12:30:00'],
    ['2026-02-30T23:59', '2026-02-30T23:59:00', '2026-02-30T23:59:00', '2026-02-30T23:59:00'],
    ['2026-10-31T24:59', '2026-10-31T24:59:00', '2026-10-31T24:59:00', '2026-10-31T24:59:00'],
    ['tomorrow', 'tomorrow', 'tomorrow', 'tomorrow'],
  ])('%s starts at %s, ends at %s, and as a day at %s', (text, start, end, day) => {
    expect([startOf(text), endOf(text), endOfDay(text)]).toEqual([start, end, day]);
  });
});

describe('amounts', () => {
  it('law: a number in an answer has the digits of the decimal', () => {
    assert(
      property(bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), (nano) =>
        expect(nanoOf(JSON.stringify(exactNumber(nano)))).toBe(nano),
      ),
    );
  });

  it('law: what a group shows by interval adds up to what it cost, also where hours have one name', () => {
    const starts = [
      '2026-10-25T02:00:00+02:00',
      '2026-10-25T02:00:00+01:00',
      '2026-10-25T03:00:00+01:00',
      '2026-11-01T00:00:00+01:00',
    ];
    const buckets = array(record({ start: constantFrom(...starts), nano: bigInt({ min: 0n, max: 10n ** 20n }) }));
    assert(
      property(buckets, constantFrom('hourly', 'daily', 'weekly', 'monthly'), (drawn, interval) => {
        const intervals = drawn.map(({ start, nano }) =>
          bucket(start, JSON.stringify(exactNumber(nano)), item(1, '0')),
        );
        const used = usedByInterval({ total_cost: '0', intervals }, interval).map(([, { costNano }]) => costNano);
        expect(used.reduce((sum, one) => sum + one, 0n)).toBe(drawn.reduce((sum, { nano }) => sum + nano, 0n));
      }),
    );
  });

  it('names are unique, whatever others are called', () => {
    expect(
      uniqueNames([
        { name: 'a', id: '1' },
        { name: 'a', id: '2' },
        { name: 'a (1)', id: '3' },
        { name: 'b', id: '4' },
      ]),
    ).toEqual(['a (1) (1)', 'a (2)', 'a (1)', 'b']);
  });

  it('are of currencies that have their symbols', () =>
    expect(['USD', 'EUR', 'INR', 'XXX'].map(symbolOf)).toEqual(['$', '€', '₹', '¤']));
});
