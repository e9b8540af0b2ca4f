import { beforeAll, describe, expect, it } from '@jest/globals';
import { aDayThatLasts } from '@atoll/testing';
import { adminKey, call, createTeam, succeed, userKeyOf, type TeamView } from './client.js';

interface Bucket {
  start: string;
  end: string;
  partial: boolean;
  cost: string;
  items: { kind: string; sku: string; unit: string | null; unit_hours: number; cost: string }[];
}

interface Report {
  timezone: string;
  start: string;
  as_of: string;
  total_cost: string;
  intervals: Bucket[];
  unpriced: object[];
  workspaces: { workspace_name: string; total_cost: string }[];
  pools: object[];
  volumes: object[];
}

interface Fault {
  path: string;
  message: string;
}

let sequence = 0;
/** A name that no other story uses. */
const fresh = (name: string) => `${name}-${process.pid}-${Date.now()}-${(sequence += 1)}`;

const setPrice = (body: object) => call('POST', '/price', { key: adminKey, body: { unit: 'vgpu', ...body } });
const record = (...events: object[]) =>
  call<Record<string, unknown> & { errors: Fault[] }>('POST', '/usage-events', { key: adminKey, body: { events } });

const october = '2025-10-01T00:00:00/2025-11-01T00:00:00';

describe('the bill of a team', () => {
  let team: TeamView;
  let keys: Record<string, string>;
  let sku: string;
  let slice: object;
  let facts: object[];
  const read = (path: string, key = keys.billing_viewer) => call<Report>('GET', path, { key });

  beforeAll(async () => {
    ({ team, keys } = await createTeam('Billed', ['team_owner', 'billing_viewer', 'member']));
    sku = fresh('gpu.A100-80GB.1g.10gb');
    slice = {
      source: 'story',
      resource_id: 'gpuaas_pool:42',
      kind: 'gpuaas_pool',
      sku,
      team_id: team.id,
      workspace_id: team.workspaces[0]?.id,
      region_id: 1,
      pool_id: 7,
      attributes: { pool_name: 'a100', profile: '1g.10gb', v_ram_gb: 10 },
    };
    expect((await setPrice({ sku, unit_price: '1.5', valid_from: '2025-01-01T00:00:00Z', force: true })).status).toBe(
      201,
    );
    // 18:15 UTC is midnight in Kathmandu.
    facts = [
      { ...slice, id: fresh('a'), time: '2025-10-01T18:15:00.000Z', quantity: 2 },
      { ...slice, id: fresh('b'), time: '2025-10-02T06:15:00.000Z', quantity: 0.5 },
      { ...slice, id: fresh('c'), time: '2025-10-02T18:15:00.000Z', quantity: 0 },
    ];
    const told = await record(...facts);
    expect([told.status, told.body]).toEqual([200, { accepted: 3, duplicates: 0 }]);
  });

  it('is read by day in Kathmandu, by a user whose zone that is', async () => {
    const path = `/team-billing/${team.id}/2025-10-01T00%3A00%3A00/2025-10-04T00%3A00%3A00/daily/local`;
    const key = await userKeyOf(team.members.find(({ role }) => role === 'team_owner')?.email ?? '');
    await succeed('PUT', '/user/profile', { key, body: { timezone: 'Asia/Kathmandu' } });
    const { body: report } = await read(path, key);
    expect(report.timezone).toBe('Asia/Kathmandu');
    // One day holds it all: 12 h × 2 × 1.5 and 12 h × 0.5 × 1.5.
    expect(report.intervals.map(({ start, cost }) => [start, cost])).toEqual([
      ['2025-10-01T00:00:00+05:45', '0'],
      ['2025-10-02T00:00:00+05:45', '45'],
      ['2025-10-03T00:00:00+05:45', '0'],
    ]);
    expect([report.start, report.total_cost, report.unpriced]).toEqual(['2025-10-01T00:00:00+05:45', '45', []]);
    expect(report.intervals[1]?.items).toEqual([
      { kind: 'gpuaas_pool', sku, unit: 'vgpu', unit_hours: 30, cost: '45' },
    ]);
  });

  it('is the same without a zone, with an empty one and in utc, and for each of its groupings', async () => {
    const paths = [
      `/team-billing/${team.id}/${october}/monthly`,
      `/team-billing/${team.id}/${october}/monthly/`,
      `/team-billing/${team.id}/${october}/monthly/utc`,
      `/workspace-billing/${team.workspaces[0]?.id}/${october}/weekly/utc`,
      `/team-billing/group-by-workspace/${team.id}/${october}/daily/utc`,
      `/team-billing/gpuaas-pool/${team.id}/${october}/hourly/1/utc`,
      `/team-billing/gpuaas-pool/${team.id}/${october}/monthly/all`,
    ];
    for (const path of paths) {
      const { status, body } = await read(path);
      expect([path, status, body.timezone, body.total_cost]).toEqual([path, 200, 'UTC', '45']);
    }
    const { body } = await read(paths.at(-1) ?? '');
    expect(body.pools).toEqual([
      expect.objectContaining({
        pool_id: '7',
        pool_name: 'a100',
        region_id: '1',
        v_ram_gb: 10,
        vgpu_hours: 30,
        total_cost: '45',
        subscriptions: [{ subscription_id: '42', profile: '1g.10gb', v_ram_gb: 10, vgpu_hours: 30, total_cost: '45' }],
      }),
    ]);
    expect((await read(`/team-billing/shared-storage/${team.id}/${october}/monthly/all/utc`)).body).toMatchObject({
      total_cost: '0',
      volumes: [],
    });
  });

  it('takes the same facts again for duplicates, and other content under their ids for a conflict', async () => {
    const before = await read(`/team-billing/${team.id}/${october}/hourly/utc`);
    expect((await record(...facts.toReversed())).body).toEqual({ accepted: 0, duplicates: 3 });
    const changed = await record({ ...facts[0], quantity: 3 });
    expect([changed.status, changed.body.code]).toEqual([409, 'conflict']);
    const after = await read(`/team-billing/${team.id}/${october}/hourly/utc`);
    expect({ ...after.body, as_of: '' }).toEqual({ ...before.body, as_of: '' });
  });

  it('stores nothing of a batch with a bad fact, and names each fault by its index', async () => {
    const volume = {
      ...slice,
      kind: 'shared_storage',
      resource_id: 'shared_storage:9',
      sku: 'storage.shared',
      pool_id: undefined,
    };
    const { status, body } = await record(
      { ...volume, id: fresh('fine'), time: '2025-10-05T00:00:00Z', quantity: 100 },
      { ...volume, id: fresh('bad'), time: '2025-02-30T00:00:00Z', quantity: -1, colour: 'blue' },
    );
    expect(status).toBe(400);
    expect(body.errors.map(({ path }) => path).sort()).toEqual([
      'events.1.colour',
      'events.1.quantity',
      'events.1.time',
    ]);
    expect((await read(`/team-billing/shared-storage/${team.id}/${october}/monthly/all/utc`)).body.volumes).toEqual([]);
  });

  it('is rated again by a price set back, which needs force', async () => {
    const later = { sku, unit_price: '3', valid_from: '2025-10-02T06:15:00Z' };
    const refused = await setPrice(later);
    expect([refused.status, (refused.body as { errors: Fault[] }).errors[0]?.path]).toEqual([400, 'valid_from']);
    expect((await setPrice({ ...later, force: true, team_id: team.id })).status).toBe(201);
    expect((await read(`/team-billing/${team.id}/${october}/monthly/utc`)).body.total_cost).toBe('54');
  });

  it('names what has no price, and compares two months', async () => {
    const other = fresh('vm.small');
    const machine = {
      ...slice,
      kind: 'vm',
      resource_id: 'vm:1',
      sku: other,
      pool_id: undefined,
      attributes: undefined,
    };
    await record(
      { ...machine, id: fresh('d'), time: '2025-08-01T00:00:00Z', quantity: 1 },
      { ...machine, id: fresh('e'), time: '2025-08-01T10:00:00Z', quantity: 2 },
      { ...machine, id: fresh('f'), time: '2025-09-01T10:00:00Z', quantity: 0 },
    );
    const months = `/team-billing/monthly-comparison/${team.id}/2025-08/2025-09`;
    const august = await read(`/team-billing/${team.id}/2025-08-01T00:00:00/2025-09-01T00:00:00/monthly/utc`);
    expect(august.body).toMatchObject({
      total_cost: '0',
      unpriced: [{ resource_id: 'vm:1', kind: 'vm', sku: other, unit_hours: 1478 }],
    });
    await setPrice({ sku: other, unit: 'vm', unit_price: '0.5', valid_from: '2025-01-01T00:00:00Z', force: true });
    expect((await read(months)).body).toMatchObject({
      start_month: { month: '2025-08', total_cost: '739' },
      end_month: { month: '2025-09', total_cost: '10' },
      change: { amount: '-729', percent: -98.65 },
      items: [
        {
          kind: 'vm',
          sku: other,
          start_cost: '739',
          end_cost: '10',
          change: '-729',
          price_effect: '0',
          quantity_effect: '-729',
        },
      ],
    });
  });

  it('is for owners, admins and billing viewers, and counts what runs up to now', async () => {
    expect((await read(`/team-billing/${team.id}/${october}/daily/utc`, keys.member)).status).toBe(403);
    await aDayThatLasts();
    const now = Date.now();
    await record({
      ...slice,
      id: fresh('g'),
      resource_id: 'gpuaas_pool:43',
      time: new Date(now - 3_600_000).toISOString(),
      quantity: 1,
    });
    const day = (offset: number) => new Date(now + offset * 86_400_000).toISOString().slice(0, 10);
    const { body } = await read(`/team-billing/${team.id}/${day(-1)}T00:00:00/${day(2)}T00:00:00/daily/utc`);
    expect(Date.parse(body.as_of)).toBeGreaterThanOrEqual(now);
    expect(body.intervals.map(({ partial }) => partial)).toEqual([false, true, false]);
    expect(body.intervals[2]).toMatchObject({ cost: '0', items: [] });
    const hours = body.intervals.flatMap(({ items }) => items).reduce((sum, { unit_hours }) => sum + unit_hours, 0);
    expect(hours).toBeCloseTo(1 + (Date.parse(body.as_of) - now) / 3_600_000, 6);
  });
});
