import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { billingReports, instanceReports } from '@atoll/contracts/billing';
import { gpuaasBatches, subscriptions, type Subscription } from '@atoll/contracts/gpuaas';
import { invalidField, type AppError } from '@atoll/errors';
import { teamId } from '../../testing/team-fixture.js';
import { startCompat, type CompatUnderTest } from '../testing/compat-fixture.js';
import { aBilledPool, aReport, days } from '../testing/reports-fixture.js';

let compat: CompatUnderTest;
let key: string;
beforeAll(async () => {
  compat = await startCompat();
  key = compat.gateway.services.key();
});
afterAll(() => compat.close());

beforeEach(() => {
  const { services } = compat.gateway;
  const pools = [aBilledPool('1', 'a100', '1.5', days), aBilledPool('2', 'a100', '0'), aBilledPool('3', null, '0')];
  services.answer(billingReports.pools, () => ({ ...aReport('1.5', days), pools }));
  services.answer(gpuaasBatches.subscriptions, ({ subscription_ids }) => ({
    data: [
      {
        subscription_id: '1',
        vgpus_allocated: 2,
        status: 'active',
        created_at: '2026-10-01T00:00:00.000Z',
      } as Subscription,
    ].filter(({ subscription_id }) => subscription_ids.includes(subscription_id)),
  }));
});

const read = async (url: string) =>
  (await compat.call<Record<string, never>>('GET', url, { key })).body as Record<string, unknown>;
const asked = (operation: { subject: string }) => compat.gateway.services.callsOf(operation).at(-1)?.input;

describe('what subscriptions used', () => {
  it('is listed by page, with the totals of all', async () => {
    const page = await read(
      `/api/gpuaas/${teamId}/metrics?start_date=2026-10-01&end_date=2026-10-31&page=7&itemsPerPage=2`,
    );
    expect(page).toMatchObject({
      total_hours: 144,
      total_cost: 1.5,
      page: 1,
      per_page: 2,
      total_items: 3,
      total_pages: 2,
    });
    expect(page.items).toEqual([
      {
        subscription_id: 3,
        pool_name: 'Pool 3',
        gpu_count: 0,
        hours_used: 48,
        cost: 0,
        start_time: null,
        end_time: null,
        status: 'unsubscribed',
      },
    ]);
    expect(asked(billingReports.pools)).toMatchObject({
      start_date: '2026-10-01T00:00:00',
      end_date: '2026-11-01T00:00:00',
    });
    expect(await read(`/api/gpuaas/${teamId}/metrics`)).toMatchObject({
      items: [{ subscription_id: 1, gpu_count: 2, status: 'subscribed' }, {}, {}],
    });
    expect(asked(billingReports.pools)).toMatchObject({ start_date: expect.stringMatching(/-01T00:00:00$/) });
  });

  it('is looked up for the subscriptions of the page alone, each once, and not for what no GPU service numbers', async () => {
    const named = ['1', '2', '3', '3', 'elsewhere'].map((id) => aBilledPool(id, null, '0'));
    compat.gateway.services.answer(billingReports.pools, () => ({ ...aReport('0'), pools: named }));
    const { services } = compat.gateway;
    const before = services.calls.length;
    const shown = async (query: string) => (await read(`/api/gpuaas/${teamId}/metrics?${query}`)).items as object[];
    expect(await shown('itemsPerPage=2')).toMatchObject([{ status: 'subscribed' }, { status: 'unsubscribed' }]);
    expect(asked(gpuaasBatches.subscriptions)).toEqual({ team_id: teamId, subscription_ids: ['1', '2'] });
    expect(await shown('page=1&itemsPerPage=2')).toHaveLength(2);
    expect(asked(gpuaasBatches.subscriptions)).toEqual({ team_id: teamId, subscription_ids: ['3'] });
    // The page of the one from elsewhere.
    expect(await shown('page=2&itemsPerPage=2')).toMatchObject([{ subscription_id: 0, status: 'unsubscribed' }]);
    const subjects = services.calls.slice(before).map(({ subject }) => subject);
    expect(subjects.filter((subject) => subject === gpuaasBatches.subscriptions.subject)).toHaveLength(2);
    expect(subjects).not.toContain(subscriptions.list.subject);
  });

  it('comes in pages of 1000 at most, whatever is asked for', async () => {
    const many = Array.from({ length: 1001 }, (_, at) => aBilledPool(String(at + 1), 'a100', '0'));
    compat.gateway.services.answer(billingReports.pools, () => ({ ...aReport('0'), pools: many }));
    const page = await read(`/api/gpuaas/${teamId}/metrics?itemsPerPage=1000000000`);
    expect(page).toMatchObject({ page: 0, per_page: 1000, total_items: 1001, total_pages: 2 });
    expect(page.items).toHaveLength(1000);
    const last = await read(`/api/gpuaas/${teamId}/metrics?itemsPerPage=1000000000&page=1`);
    expect(last.items).toMatchObject([{ subscription_id: 1001 }]);
  });

  it('is shown over time', async () => {
    const graph = await read(
      `/api/gpuaas/${teamId}/metrics-graph?start_timestamp=1790812800&end_timestamp=2026-10-04T00:00:00.000Z&granularity=1h`,
    );
    expect(graph).toMatchObject({
      granularity: '1h',
      total_hours: 48,
      total_tflops: 0,
      data: [{ hours: 24, value: 24, tflops: 0 }, { hours: 0 }, {}],
    });
    expect(asked(billingReports.pools)).toMatchObject({
      start_date: '2026-10-01T00:00:00',
      end_date: '2026-10-04T00:00:00',
      interval: 'hourly',
    });
    expect((await compat.call('GET', `/api/gpuaas/${teamId}/metrics-graph?granularity=2h`, { key })).status).toBe(400);
  });
});

/** What the billing service says of the fields of a report. */
const faults = {
  unreal: invalidField('start_date', 'realDate', 'must be a real date in the years 2000 to 2199'),
  reversed: invalidField('end_date', 'later', 'must be later than start_date'),
  tooLong: invalidField(
    'end_date',
    'longestRange',
    'must be at most 366 days after start_date where interval is hourly',
  ),
  tooMany: invalidField(
    'interval',
    'mostCells',
    'must be longer, or the range shorter: this makes 200001 cells (intervals × groups × items), and at most 200000 are shown',
  ),
};

describe('a refused range is told by the fields of the call', () => {
  const excess = 'this makes 200001 cells (intervals × groups × items), and at most 200000 are shown';

  async function refused(url: string, fault: AppError) {
    const { services } = compat.gateway;
    services.answer(billingReports.now, () => ({ as_of: '2026-11-02T00:00:00.000Z' }));
    for (const operation of [
      billingReports.pools,
      billingReports.ratedPools,
      billingReports.storage,
      billingReports.team,
      instanceReports.ofTeam,
    ])
      services.answer(operation, () => {
        throw fault;
      });
    const { status, body } = await compat.call('GET', url, { key });
    expect(status).toBe(400);
    // The sentence of the error is that of its first fault.
    expect(body.message).toBe(`${body.errors[0]?.message}.`);
    return body.errors.map(({ field, message }) => [field, message]);
  }

  it.each([
    ['unreal', 'start_timestamp', 'start_timestamp must be a real date in the years 2000 to 2199'],
    ['reversed', 'end_timestamp', 'end_timestamp must be later than start_timestamp'],
    [
      'tooLong',
      'end_timestamp',
      'end_timestamp must be at most 366 days after start_timestamp where granularity is 1h',
    ],
    ['tooMany', 'granularity', `granularity must be longer, or the range shorter: ${excess}`],
  ] as const)('of the graph: %s', async (name, field, message) => {
    const url = `/api/gpuaas/${teamId}/metrics-graph?granularity=1h`;
    expect(await refused(url, faults[name])).toEqual([[field, message]]);
  });

  it.each([
    ['the list', `gpuaas/${teamId}/metrics`],
    ['the bill by kind', `team-billing/summary/${teamId}/2026-01-01/2026-02-01`],
    ['a bill that is one total, whatever its interval', `team-billing/${teamId}/2026-01-01/2026-02-01/hourly`],
  ])('of a call without intervals: %s', async (_, path) => {
    expect(await refused(`/api/${path}`, faults.unreal)).toEqual([
      ['start_date', expect.stringMatching(/^start_date must be a real/)],
    ]);
    expect(await refused(`/api/${path}`, faults.tooLong)).toEqual([
      ['end_date', 'end_date must be at most 366 days after start_date'],
    ]);
    expect(await refused(`/api/${path}`, faults.tooMany)).toEqual([
      ['end_date', `end_date must be earlier: ${excess}`],
    ]);
  });
});
