import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { billingReports, usage, type UsageBatch } from '@atoll/contracts/billing';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

const id = '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10';
const range = '2026-10-01T00:00:00/2026-11-01T00:00:00/daily';

let gateway: GatewayUnderTest;
let key: string;
let asked: { operation: string; input: unknown }[];
beforeAll(async () => {
  gateway = await startGateway();
  key = gateway.services.key({ platform_admin: true });
  for (const [operation, contract] of Object.entries(billingReports)) {
    gateway.services.answer<object, object>(contract, (input) => {
      asked.push({ operation, input });
      return { total_cost: '0.100000000' };
    });
  }
});
beforeEach(() => {
  asked = [];
});
afterAll(() => gateway.close());

const read = { start_date: '2026-10-01T00:00:00', end_date: '2026-11-01T00:00:00', interval: 'daily' };

describe('a billing path', () => {
  const paths = [
    { operation: 'team', path: `team-billing/${id}/${range}`, input: { team_id: id, ...read } },
    { operation: 'workspace', path: `workspace-billing/${id}/${range}`, input: { workspace_id: id, ...read } },
    {
      operation: 'byWorkspace',
      path: `team-billing/group-by-workspace/${id}/${range}`,
      input: { team_id: id, ...read },
    },
    {
      operation: 'pools',
      path: `team-billing/gpuaas-pool/${id}/${range}/7`,
      input: { team_id: id, ...read, region_id: '7' },
    },
    {
      operation: 'storage',
      path: `team-billing/shared-storage/${id}/${range}/all`,
      input: { team_id: id, ...read, region_id: 'all' },
    },
  ];

  it.each(paths)(
    'of the report $operation is served with a zone, without one, and with an empty one',
    async ({ operation, path, input }) => {
      const forms: [string, object][] = [
        [path, input],
        [`${path}/`, input],
        [`${path}/utc`, { ...input, timezone: 'utc' }],
        [`${path}/local`, { ...input, timezone: 'local' }],
        [`${path.replaceAll(':', '%3A')}/utc`, { ...input, timezone: 'utc' }],
        [`${path.replaceAll(':', '%3a')}`, input],
      ];
      for (const [form, expected] of forms) {
        const { status, headers, body } = await gateway.call<unknown>('GET', `/api/${form}`, { key });
        expect([form, status, headers['content-type'], body]).toEqual([
          form,
          200,
          'application/json; charset=utf-8',
          { total_cost: '0.100000000' },
        ]);
        expect(asked.pop()).toEqual({ operation, input: expected });
      }
    },
  );

  it('of the comparison takes two months, and the zone in its query or as its last segment', async () => {
    const path = `/api/team-billing/monthly-comparison/${id}/2026-09/2026-10`;
    const months = { team_id: id, start_month: '2026-09', end_month: '2026-10' };
    for (const [query, zone] of [
      ['', {}],
      ['?timezone=', {}],
      ['?timezone=local', { timezone: 'local' }],
      ['/', {}],
      ['/utc', { timezone: 'utc' }],
      ['/local', { timezone: 'local' }],
    ] as const) {
      expect((await gateway.call('GET', path + query, { key })).status).toBe(200);
      expect(asked.pop()).toEqual({ operation: 'comparison', input: { ...months, ...zone } });
    }
  });

  it.each([
    ['start_date', `${id}/2026-10-01/2026-11-01T00:00:00/daily/utc`],
    ['start_date', `${id}/2026-10-01T24:00:00/2026-11-01T00:00:00/daily/utc`],
    ['start_date', `${id}/0000-10-01T00:00:00/2026-11-01T00:00:00/daily/utc`],
    ['start_date', `${id}/2026-13-01T00:00:00/2026-11-01T00:00:00/daily/utc`],
    ['start_date', `${id}/2026-10-01T00:00:00Z/2026-11-01T00:00:00/daily/utc`],
    ['start_date', `${id}/2026-10-01T00:00:00+02:00/2026-11-01T00:00:00/daily/utc`],
    ['end_date', `${id}/2026-10-01T00:00:00/2026-11-01T00:00:00.000/daily/utc`],
    ['end_date', `${id}/2026-10-01T00:00:00/2026-11-01%2000:00:00/daily/utc`],
    ['interval', `${id}/2026-10-01T00:00:00/2026-11-01T00:00:00/Monthly/utc`],
    ['interval', `${id}/2026-10-01T00:00:00/2026-11-01T00:00:00/yearly`],
    ['timezone', `${id}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/LOCAL`],
    ['timezone', `${id}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/Asia%2FKathmandu`],
    ['team_id', `7/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/utc`],
    ['region_id', `gpuaas-pool/${id}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/ALL/utc`],
    ['region_id', `shared-storage/${id}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/0/utc`],
    ['start_month', `monthly-comparison/${id}/2026-9/2026-10`],
    ['end_month', `monthly-comparison/${id}/2026-09/2026-13`],
    ['timezone', `monthly-comparison/${id}/2026-09/2026-10/UTC`],
  ])('with a bad %s is a 400 that names it and what is allowed: %s', async (segment, path) => {
    const { status, body } = await gateway.call('GET', `/api/team-billing/${path}`, { key });
    expect([status, body.errors?.map(({ path: named }) => named)]).toEqual([400, [segment]]);
    expect(body.detail).toMatch(/must be|such as|one of/);
    expect(asked).toEqual([]);
  });

  it('is no route with a segment too many', async () => {
    expect((await gateway.call('GET', `/api/team-billing/${id}/${range}/utc/more`, { key })).status).toBe(404);
  });
});

describe('a batch of usage', () => {
  const fact = {
    source: 'meter',
    time: '2026-10-01T00:00:00Z',
    resource_id: 'vm:1',
    kind: 'vm',
    sku: 'vm.small',
    team_id: id,
    workspace_id: id,
  };
  let recorded: UsageBatch[];
  beforeEach(() => {
    recorded = [];
    gateway.services.answer(usage.record, (input) => {
      recorded.push(input);
      return { accepted: input.events.length, duplicates: 0 };
    });
  });
  const withQuantity = (quantity: string) =>
    JSON.stringify({ events: [{ ...fact, id: 'a' }] }).replace('"id"', `"quantity":${quantity},"id"`);

  it.each([
    ['1', '1'],
    ['2.50', '2.5'],
    ['123456789.123456789', '123456789.123456789'],
    ['1e-9', '0.000000001'],
  ])('keeps the quantity %s as %s, to its last digit', async (written, kept) => {
    expect((await gateway.call('POST', '/api/usage-events', { key, body: withQuantity(written) })).status).toBe(200);
    expect(recorded[0]?.events[0]?.quantity).toBe(kept);
  });

  it.each([
    '-1',
    '-1e-400',
    '1e-400',
    '1E400',
    '0.0000000001',
    '1000000000.5',
    '0.10000000000000001',
    'null',
    'true',
    '"many"',
    '"0.3"',
    '"1"',
    '"01"',
    '"1e1"',
    '[1.0000000000000000]',
  ])('refuses the quantity %s', async (written) => {
    const { status, body } = await gateway.call('POST', '/api/usage-events', { key, body: withQuantity(written) });
    expect([status, body.errors?.map(({ path }) => path)]).toEqual([400, ['events.0.quantity']]);
    expect(recorded).toEqual([]);
  });

  it('keeps an attribute that is named quantity a number, however long a number of the body is', async () => {
    for (const quantity of ['1', '1.0000000000000000']) {
      const body = withQuantity(quantity).replace('"id"', '"attributes":{"quantity":2.5},"id"');
      expect((await gateway.call('POST', '/api/usage-events', { key, body })).status).toBe(200);
      expect(recorded.pop()?.events[0]).toMatchObject({ quantity: '1', attributes: { quantity: 2.5 } });
    }
  });

  it('is refused with the number of all its faults and the first hundred of them, however many there are', async () => {
    const faulty = Array.from({ length: 1000 }, (_, index) => ({ ...fact, id: `${index}`, quantity: -1 }));
    const unknown = `{"events":[{${Array.from({ length: 60_000 }, (_, index) => `"x${index.toString(36)}":1`).join(',')}}]}`;
    for (const [body, count] of [
      [{ events: faulty }, '1000'],
      [unknown, '60009'],
    ] as const) {
      const answer = await gateway.call('POST', '/api/usage-events', { key, body });
      expect([answer.status, answer.body.errors?.length]).toEqual([400, 100]);
      expect(answer.body.detail).toContain(`(the first of ${count} faults).`);
    }
  });

  it('may be larger than other bodies, up to 768 KiB', async () => {
    const events = Array.from({ length: 1000 }, (_, index) => ({
      ...fact,
      id: `${index}`,
      quantity: 1,
      resource_name: 'x'.repeat(150),
    }));
    expect((await gateway.call('POST', '/api/usage-events', { key, body: { events } })).status).toBe(200);
    expect(recorded[0]?.events).toHaveLength(1000);
    const { status } = await gateway.call('POST', '/api/usage-events', {
      key,
      body: { events, more: 'x'.repeat(768 * 1024) },
    });
    expect(status).toBe(413);
  });
});
