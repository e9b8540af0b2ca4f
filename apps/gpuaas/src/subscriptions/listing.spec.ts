import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { gpuaasBatches, metricWindows, subscriptions, type MetricWindow } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { statementsOf } from '@atoll/testing';
import { errorOf, GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import {
  MetricsSource,
  type CoursePoint,
  type MeasuredSubscription,
  type SubscriptionMetrics,
} from '../metrics/metrics-source.js';

/** Remembers what was asked of it; measures the subscriptions in `known` alone. */
class Meter extends MetricsSource {
  readonly asked: { window: MetricWindow; subscriptions: readonly MeasuredSubscription[] }[] = [];
  readonly known = new Set<string>();

  read(window: MetricWindow, measured: readonly MeasuredSubscription[]): Promise<Map<string, SubscriptionMetrics>> {
    this.asked.push({ window, subscriptions: measured });
    const figures = { cpu_usage: 1.5, memory_usage: 2.25, gpu_utilization: 3, status: 'partial' as const };
    return Promise.resolve(
      new Map(
        measured.flatMap(({ subscriptionId }) => (this.known.has(subscriptionId) ? [[subscriptionId, figures]] : [])),
      ),
    );
  }

  course(): Promise<CoursePoint[]> {
    return Promise.resolve([]);
  }

  peaks(): Promise<Map<string, number>> {
    return Promise.resolve(new Map<string, number>());
  }
}

const meter = new Meter();
let fixture: GpuaasFixture;
let team: ToldTeam;
let pool: Inventory & { pool_id: string };
const held: string[] = [];

beforeAll(async () => {
  fixture = await GpuaasFixture.start({ metrics: meter });
  team = await fixture.team();
  pool = await fixture.pool({ mechanism: 'mps', replicas: 48 });
  for (let count = 0; count < 12; count += 1)
    held.push((await fixture.subscribe(team, { pool_id: pool.pool_id })).subscription_id);
  await fixture.settle();
  await fixture.unsubscribe(team, { subscription_id: held[0] ?? '' });
  await fixture.settle();
});
afterAll(() => fixture.stop());

const ofTeam = (more: object = {}, caller = team.member) =>
  fixture.call(subscriptions.list, { team_id: team.team_id, ...more }, caller);
const all = (more: object = {}) => fixture.call(subscriptions.listAll, more);
const idsOf = ({ data }: { data: { subscription_id: string }[] }) => data.map(({ subscription_id }) => subscription_id);

describe('the subscriptions of a team', () => {
  it('are given whole, in the order they were made, without pagination, without those that ended', async () => {
    const list = await ofTeam();
    expect([idsOf(list), list.pagination]).toEqual([held.slice(1), undefined]);
  });

  it('are given in pages where limit is sent, counted from 1; past the end a page is empty', async () => {
    const second = await ofTeam({ limit: 5, page: 2 });
    expect([idsOf(second), second.pagination]).toEqual([held.slice(6, 11), { page: 2, limit: 5, total: 11 }]);
    expect((await ofTeam({ limit: 5 })).pagination).toEqual({ page: 1, limit: 5, total: 11 });
    expect(await ofTeam({ limit: 5, page: 9 })).toEqual({ data: [], pagination: { page: 9, limit: 5, total: 11 } });
    expect(idsOf(await ofTeam({ page: 3 }))).toEqual(held.slice(1));
  });

  it('are listed with those that ended where asked for, at 0 vGPUs', async () => {
    const list = await ofTeam({ include_ended: 'true' });
    expect(idsOf(list)).toEqual(held);
    expect(list.data[0]).toMatchObject({ status: 'unsubscribed', vgpus_allocated: 0 });
    expect(idsOf(await ofTeam({ include_ended: 'false' }))).toEqual(held.slice(1));
  });

  it('are of one id where asked for, whatever became of it', async () => {
    expect(idsOf(await ofTeam({ subscription_id: held[3] }))).toEqual([held[3]]);
    expect((await ofTeam({ subscription_id: held[0] })).data[0]?.status).toBe('unsubscribed');
  });

  it('are found by many ids at once, whatever became of them, as they are listed but for metrics', async () => {
    const other = await fixture.team();
    const foreign = await fixture.subscribe(other, { pool_id: pool.pool_id });
    const find = (team_id: string, by?: ToldTeam['member']) => {
      const subscription_ids = [held[3] ?? '', foreign.subscription_id, held[0] ?? '', '999999999'];
      return fixture.call(gpuaasBatches.subscriptions, { team_id, subscription_ids }, by);
    };
    const { data } = await ofTeam({ include_ended: 'true' });
    const listed = [data[0], data[3]].map((one) => {
      const { metrics: _metrics, metrics_status: _status, ...subscription } = one ?? ({} as never);
      return subscription;
    });
    expect((await find(team.team_id, team.member)).data).toEqual(listed);
    expect((await find(team.team_id)).data).toEqual(listed);
    expect(idsOf(await find(other.team_id, other.member))).toEqual([foreign.subscription_id]);
    expect((await errorOf(find(newId()))).code).toBe('not_found');
  });

  it('of another team are looked for by the same statements as those that do not exist', async () => {
    const foreign = await fixture.subscribe(await fixture.team(), { pool_id: pool.pool_id });
    const { team_id, member } = team;
    const lookFor = async (id: string) => {
      const find = () => fixture.call(gpuaasBatches.subscriptions, { team_id, subscription_ids: [id] }, member);
      return (await statementsOf(find)).map(({ text }) => text);
    };
    expect(await lookFor(foreign.subscription_id)).toEqual(await lookFor('999999999'));
  });

  it('of another team, of another GPU service or of nobody are not found by their id', async () => {
    const other = await fixture.team();
    const { subscription_id } = await fixture.subscribe(other, { pool_id: pool.pool_id });
    const foreign = await errorOf(ofTeam({ subscription_id }));
    const unknown = await errorOf(ofTeam({ subscription_id: '999999999' }));
    expect([foreign.code, foreign.message]).toEqual(['not_found', unknown.message]);
    const { gpuaas_id } = await fixture.inventory();
    expect((await errorOf(ofTeam({ subscription_id: held[3], gpuaas_id }))).code).toBe('not_found');
    expect(await ofTeam({ gpuaas_id })).toEqual({ data: [] });
    expect((await errorOf(ofTeam({ gpuaas_id: '999999999' }))).code).toBe('not_found');
  });

  it.each([
    { limit: 0 },
    { limit: 101 },
    { page: 0 },
    { page: 1.5 },
    { subscription_id: 'x' },
    { include_ended: 'yes' },
    { metric_window: 'last_2h' },
  ])('are not listed by %j', async (query) => {
    const { code, details } = await errorOf(ofTeam(query));
    expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', Object.keys(query)[0]]);
  });
});

describe('the subscriptions of all teams', () => {
  it('are the operator’s to see', async () => {
    expect((await errorOf(fixture.call(subscriptions.listAll, {}, team.member))).code).toBe('forbidden');
  });

  it('come in pages of ten unless said, each once, in the order they were made', async () => {
    const first = await all();
    expect([first.data.length, first.pagination.page, first.pagination.limit]).toEqual([10, 1, 10]);
    const pages = [];
    for (let page = 1; page <= 4; page += 1) pages.push(...idsOf(await all({ page, limit: 4 })));
    expect(pages).toHaveLength(first.pagination.total);
    expect(pages).toEqual(pages.toSorted((one, other) => Number(one) - Number(other)));
    expect(new Set(pages).size).toBe(pages.length);
    expect((await all({ page: 1_000_000_000 })).data).toEqual([]);
  });

  it('count those that ended only where asked for', async () => {
    const [live, whole] = [await all({ limit: 100 }), await all({ limit: 100, include_ended: 'true' })];
    expect(whole.pagination.total).toBe(live.pagination.total + 1);
    expect([idsOf(live).includes(held[0] ?? ''), idsOf(whole).includes(held[0] ?? '')]).toEqual([false, true]);
  });

  it('are, field by field, what their team sees of them', async () => {
    const { data } = await all({ limit: 100 });
    expect(data.filter(({ team_id }) => team_id === team.team_id)).toEqual((await ofTeam()).data);
  });
});

describe('the figures of a listing', () => {
  it('are averages over last_24h unless said', async () => {
    for (const list of [ofTeam, all]) {
      await list();
      expect(meter.asked.at(-1)?.window).toBe('last_24h');
    }
  });

  it.each(metricWindows)('are averages over %s where that is asked for', async (metric_window) => {
    for (const list of [ofTeam, all]) {
      await list({ metric_window });
      expect(meter.asked.at(-1)?.window).toBe(metric_window);
    }
  });

  it('are had by one query a page, of what is on it', async () => {
    const before = meter.asked.length;
    const list = await all({ limit: 4, page: 2 });
    expect(meter.asked.length).toBe(before + 1);
    expect(meter.asked.at(-1)?.subscriptions.map(({ subscriptionId }) => subscriptionId)).toEqual(idsOf(list));
  });

  it('are those of the source, and 0 with no_data for what it did not measure', async () => {
    meter.known.add(held[2] ?? '');
    const [none, measured] = (await ofTeam()).data;
    expect(none).toMatchObject({
      metrics: { cpu_usage: 0, memory_usage: 0, gpu_utilization: 0 },
      metrics_status: 'no_data',
    });
    expect([measured?.subscription_id, measured?.metrics, measured?.metrics_status]).toEqual([
      held[2],
      { cpu_usage: 1.5, memory_usage: 2.25, gpu_utilization: 3 },
      'partial',
    ]);
  });

  it('are asked for by the slices that were held, and when; by its MIG instance what MIG cut', async () => {
    const mig = await fixture.pool({ profiles: ['3g.40gb'] });
    const { subscription_id } = await fixture.subscribe(team, { pool_id: mig.pool_id, vgpus: 2 });
    await fixture.settle();
    await ofTeam({ include_ended: 'true' });
    const asked = new Map(meter.asked.at(-1)?.subscriptions.map((each) => [each.subscriptionId, each]));
    const { uuid } = await fixture.gpu(mig);
    const { slices = [], activeSince = null } = asked.get(subscription_id) ?? {};
    expect(activeSince).toBeInstanceOf(Date);
    const shape = {
      gpuUuid: uuid,
      isMigInstance: true,
      gpuInstanceId: expect.any(Number),
      heldFrom: expect.any(Date),
      heldUntil: null,
    };
    expect(slices).toEqual([shape, shape]);
    expect(new Set(slices.map(({ gpuInstanceId }) => gpuInstanceId)).size).toBe(2);
    expect(asked.get(held[2] ?? '')?.slices).toEqual([
      expect.objectContaining({ isMigInstance: false, gpuInstanceId: null, heldUntil: null }),
    ]);
    const [ended] = asked.get(held[0] ?? '')?.slices ?? [];
    expect(ended?.heldUntil?.getTime()).toBeGreaterThan(ended?.heldFrom.getTime() ?? NaN);
  });

  it('are not asked for by what was held before the window', async () => {
    const { subscription_id } = await fixture.subscribe(team, { pool_id: pool.pool_id });
    await fixture.settle();
    await fixture.query(
      `INSERT INTO held_slice (lease_id, subscription_id, gpu_id, is_slot, held_from, held_until)
       SELECT -1, $1, gpu_id, true, clock_timestamp() - interval '5 hours', clock_timestamp() - interval '3 hours' FROM gpu LIMIT 1`,
      [subscription_id],
    );
    for (const [metric_window, count] of [
      ['last_1h', 1],
      ['last_6h', 2],
    ] as const) {
      await ofTeam({ subscription_id, metric_window });
      expect(meter.asked.at(-1)?.subscriptions[0]?.slices).toHaveLength(count);
    }
  });
});

describe('the figures of what has held very much', () => {
  const asked = async (given: {
    openUuids?: readonly (string | undefined)[];
    openInstances?: number;
    closed?: number;
  }) => {
    const { openUuids = [], openInstances = 0, closed = 0 } = given;
    const { subscription_id } = await fixture.subscribe(team, { pool_id: pool.pool_id });
    await fixture.settle();
    await fixture.query('DELETE FROM held_slice WHERE subscription_id = $1', [subscription_id]);
    await fixture.query(
      `INSERT INTO held_slice (lease_id, subscription_id, gpu_id, is_slot, gpu_instance_id, held_from, held_until)
       SELECT -1000000 * $1::bigint - row_number() OVER (), $1, gpu_id, true, instance, clock_timestamp() - minutes_ago * interval '1 minute', ended
       FROM (
         SELECT gpu_id, NULL::int AS instance, number AS minutes_ago, NULL::timestamptz AS ended
         FROM unnest($2::text[]) WITH ORDINALITY given (uuid, number) JOIN gpu USING (uuid)
         UNION ALL SELECT min(gpu_id), number, 1, NULL FROM gpu, generate_series(1, $3::int) number GROUP BY number
         UNION ALL SELECT min(gpu_id), NULL, 2, clock_timestamp() FROM gpu, generate_series(1, $4::int) number GROUP BY number
       ) held`,
      [subscription_id, openUuids, openInstances, closed],
    );
    await ofTeam({ subscription_id, metric_window: 'last_30d' });
    return meter.asked.at(-1)?.subscriptions[0];
  };

  it('are of each GPU that it holds, however many of its slices share one', async () => {
    const { uuid: crowded } = await fixture.gpu(pool);
    const { uuid: other } = await fixture.gpu(await fixture.pool({ mechanism: 'mps', replicas: 2 }));
    const measured = await asked({ openUuids: [...Array.from({ length: 1_200 }, () => crowded), other] });
    const uuids = measured?.slices.map(({ gpuUuid }) => gpuUuid);
    expect([measured?.isWhole, uuids?.length, new Set(uuids)]).toEqual([true, 2, new Set([crowded, other])]);
  });

  it.each([
    [{ openInstances: 1_000 }, true],
    [{ openInstances: 1_001 }, false],
    [{ closed: 1_000 }, true],
    [{ closed: 1_001 }, false],
    [{ openInstances: 600, closed: 401 }, false],
  ])('are of a thousand times at most, and it is known whether those are all: %j', async (given, isWhole) => {
    const measured = await asked(given);
    expect([measured?.slices.length, measured?.isWhole]).toEqual([1_000, isWhole]);
  });
});

describe('the subscriptions of a team that has had very many', () => {
  let many: ToldTeam;
  /** As many more as `from`, which was made before them. */
  const copies = (from: string, count: number) =>
    fixture.query(
      `WITH copied AS (SELECT * FROM subscription WHERE subscription_id = $1)
       INSERT INTO subscription (team_id, workspace_id, pool_id, name, profile, v_ram_gb, vgpus, active_since, state, entered_at, created_at)
       SELECT team_id, workspace_id, pool_id, name, profile, v_ram_gb, vgpus, active_since, state, entered_at, created_at + n * interval '1 ms'
       FROM copied, generate_series(1, $2) n`,
      [from, count],
    );
  const idsOfMeasured = (asked: readonly MeasuredSubscription[]) => asked.map(({ subscriptionId }) => subscriptionId);
  const listed = (more: object = {}) =>
    fixture.call(subscriptions.list, { team_id: many.team_id, ...more }, many.member);
  beforeAll(async () => {
    many = await fixture.team();
  });

  it('are all listed without limit, and without figures where they ended before the window', async () => {
    const [gone, kept] = [
      await fixture.subscribe(many, { pool_id: pool.pool_id }),
      await fixture.subscribe(many, { pool_id: pool.pool_id }),
    ];
    await fixture.settle();
    await fixture.unsubscribe(many, gone);
    await fixture.settle();
    await copies(gone.subscription_id, 1_200);
    await fixture.query(
      `UPDATE subscription SET entered_at = entered_at - interval '2 hours' WHERE team_id = $1 AND state = 'unsubscribed'`,
      [many.team_id],
    );
    meter.asked.splice(0);
    const { data, pagination } = await listed({ include_ended: 'true', metric_window: 'last_1h' });
    expect([data.length, pagination]).toEqual([1_202, undefined]);
    expect(data.map(({ created_at }) => created_at)).toEqual(data.map(({ created_at }) => created_at).toSorted());
    expect(meter.asked.splice(0).flatMap(({ subscriptions: asked }) => idsOfMeasured(asked))).toEqual([
      kept.subscription_id,
    ]);
    await listed({ include_ended: 'true', metric_window: 'last_6h' });
    const slices = meter.asked.map(({ subscriptions: asked }) => idsOfMeasured(asked));
    expect(new Set(slices.flat()).size).toBe(1_202);
    // Others have their turn after each hundred.
    expect(Math.max(...slices.map(({ length }) => length))).toBe(100);
    expect((await listed({ include_ended: 'true', limit: 1 })).pagination?.total).toBe(1_202);
    expect(idsOf(await listed({ subscription_id: gone.subscription_id }))).toEqual([gone.subscription_id]);
    expect(idsOf(await listed())).toEqual([kept.subscription_id]);
  });
});

describe('the utilization of a subscription', () => {
  it('is shown to whoever may read its team, and to others as if there were none', async () => {
    const path = { subscription_id: held[1] ?? '' };
    const ofViewer = { ...team.member, teams: [{ teamId: team.team_id, role: 'viewer' as const }] };
    expect(await fixture.call(subscriptions.utilization, path, ofViewer)).toEqual({
      ...path,
      metric_window: 'last_24h',
      points: [],
    });
    const stranger = { ...team.member, teams: [{ teamId: newId(), role: 'team_owner' as const }] };
    const [foreign, unknown] = [
      await errorOf(fixture.call(subscriptions.utilization, path, stranger)),
      await errorOf(fixture.call(subscriptions.utilization, { subscription_id: '999999' }, stranger)),
    ];
    expect([foreign.code, foreign.message]).toEqual(['not_found', unknown.message]);
  });
});
