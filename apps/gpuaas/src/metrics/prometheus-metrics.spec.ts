import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { metricWindows } from '@atoll/contracts/gpuaas';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { ago, gpuaasId, migSlice, now, nowMs, nowS, subscription, turn } from './metrics-fixture.js';
import { startPrometheus, type FakePrometheus } from './prometheus-fixture.js';
import { PrometheusMetrics } from './prometheus-metrics.js';

let prometheus: FakePrometheus;
let metrics: PrometheusMetrics;
/** Waits for what it asks, however busy the machine is. */
const source = () => new PrometheusMetrics({ url: prometheus.url, now, patienceMs: 60_000, deadlineMs: 60_000 });
beforeEach(async () => {
  prometheus = await startPrometheus();
  metrics = source();
});
afterEach(() => prometheus.stop());

type At = string | ((atS: number) => string | null);
const store = (name: string, labels: Record<string, string>, at: At) =>
  prometheus.series.push({ name, labels, at: typeof at === 'string' ? () => at : at });
const cpu = (id: string, at: At) =>
  store('atoll_subscription:cpu_usage:ratio_rate5m', { atoll_subscription_id: id }, at);
const gpu = (UUID: string, at: At, labels = {}) => store('DCGM_FI_DEV_GPU_UTIL', { UUID, ...labels }, at);
const memory = (labels: Record<string, string>, used: At, free: At) => {
  store('DCGM_FI_DEV_FB_USED', labels, used);
  store('DCGM_FI_DEV_FB_FREE', labels, free);
};

describe('the peaks of MIG instances', () => {
  const instances = [7, 8, 9].map((gpuInstanceId) => ({ gpuaasId, gpuUuid: 'GPU-a', gpuInstanceId }));

  it('are read by one query, in percent, without those that have no value', async () => {
    const sample = (id: string, value: string) => ({
      metric: { UUID: 'GPU-a', GPU_I_ID: id, atoll_figure: 'gpu_utilization' },
      value: [nowS, value],
    });
    const result = [sample('7', '42.5'), sample('8', 'NaN')];
    prometheus.answer = (response) =>
      response.end(JSON.stringify({ status: 'success', data: { resultType: 'vector', result } }));
    expect(await metrics.peaks(instances, 120)).toEqual(new Map([['GPU-a/7', 42.5]]));
    expect(prometheus.requests.map(({ form }) => form.get('query'))).toEqual([
      'label_replace(100 * max by (UUID, GPU_I_ID) (max_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=~"GPU-a",GPU_I_ID=~"7|8|9"}[120s])), ' +
        '"atoll_figure", "gpu_utilization", "", "")',
    ]);
  });

  it('are none while Prometheus does not answer', async () => {
    prometheus.answer = (response) => response.writeHead(500).end();
    expect(await metrics.peaks(instances, 120)).toEqual(new Map());
  });
});

describe('figures from Prometheus', () => {
  it('are averages in percent with two decimals', async () => {
    cpu('1', '0.123456');
    gpu('GPU-a', (atS) => (atS > nowS - 1_800 ? '90' : '10'));
    memory({ UUID: 'GPU-a' }, '10', '20');
    const read = await metrics.read('last_1h', [subscription('1', [turn('GPU-a')])]);
    // The samples of 60 minutes: 30 of the last half hour, and 30 before it.
    expect(read.get('1')).toEqual({ cpu_usage: 12.35, memory_usage: 33.33, gpu_utilization: 50, status: 'ok' });
  });

  it('are those of the device where it is shared by turns or by MPS, for every tenant, averaged over the GPUs and never summed', async () => {
    gpu('GPU-a', '80');
    gpu('GPU-b', '20');
    const read = await metrics.read('last_6h', [
      subscription('1', [turn('GPU-a')]),
      subscription('2', [turn('GPU-a'), turn('GPU-a'), turn('GPU-b')]),
    ]);
    expect([...read.values()].map(({ gpu_utilization }) => gpu_utilization)).toEqual([80, 50]);
  });

  it('are those of the instance on a MIG slice, where the utilization of the device says nothing', async () => {
    gpu('GPU-a', '0', { GPU_I_ID: '7' });
    gpu('GPU-a', '99');
    store('DCGM_FI_PROF_GR_ENGINE_ACTIVE', { UUID: 'GPU-a', GPU_I_ID: '7' }, '0.25');
    store('DCGM_FI_PROF_GR_ENGINE_ACTIVE', { UUID: 'GPU-a', GPU_I_ID: '13' }, '0.75');
    store('DCGM_FI_PROF_GR_ENGINE_ACTIVE', { UUID: 'GPU-b', GPU_I_ID: '13' }, '1');
    memory({ UUID: 'GPU-a', GPU_I_ID: '7' }, '1', '3');
    memory({ UUID: 'GPU-a', GPU_I_ID: '13' }, '3', '1');
    memory({ UUID: 'GPU-a' }, '70', '10');
    cpu('1', '0.5');
    const read = await metrics.read('last_24h', [
      subscription('1', [migSlice('GPU-a', 7)]),
      subscription('2', [migSlice('GPU-a', 7), migSlice('GPU-a', 13)]),
      subscription('3', [migSlice('GPU-b', 13)]),
    ]);
    expect(read.get('1')).toEqual({ cpu_usage: 50, memory_usage: 25, gpu_utilization: 25, status: 'ok' });
    expect(read.get('2')).toEqual({ cpu_usage: 0, memory_usage: 50, gpu_utilization: 50, status: 'partial' });
    expect(read.get('3')).toEqual({ cpu_usage: 0, memory_usage: 0, gpu_utilization: 100, status: 'partial' });
  });

  it('are those of the device for as long as a MIG GPU was in time slicing, and of the instance before', async () => {
    gpu('GPU-a', '60');
    store('DCGM_FI_PROF_GR_ENGINE_ACTIVE', { UUID: 'GPU-a', GPU_I_ID: '7' }, '0.2');
    const slices = [migSlice('GPU-a', 7, { heldUntil: ago(900) }), turn('GPU-a', { heldFrom: ago(900) })];
    const read = await metrics.read('last_1h', [subscription('1', slices)]);
    expect(read.get('1')).toMatchObject({ gpu_utilization: 30, status: 'partial' });
  });

  it('are never those of another tenant where the id of the MIG instance is unknown', async () => {
    gpu('GPU-a', '60');
    store('DCGM_FI_PROF_GR_ENGINE_ACTIVE', { UUID: 'GPU-a', GPU_I_ID: '0' }, '1');
    const read = await metrics.read('last_24h', [subscription('1', [migSlice('GPU-a', null)])]);
    expect(read.get('1')).toMatchObject({ gpu_utilization: 0, status: 'no_data' });
  });

  it('count a device once that the exporter shows for each of its pods', async () => {
    gpu('GPU-a', '40', { pod: 'one' });
    gpu('GPU-a', '40', { pod: 'two' });
    memory({ UUID: 'GPU-a', pod: 'one' }, '1', '1');
    memory({ UUID: 'GPU-a', pod: 'two' }, '1', '1');
    const read = await metrics.read('last_1h', [subscription('1', [turn('GPU-a')])]);
    expect(read.get('1')).toMatchObject({ memory_usage: 50, gpu_utilization: 40 });
  });
});

describe('samples', () => {
  it('that are NaN or infinite make no figure, and gaps are not zeros', async () => {
    cpu('1', 'NaN');
    gpu('GPU-a', (atS) => (atS > nowS - 600 ? '70' : null));
    memory(
      { UUID: 'GPU-a' },
      (atS) => (atS > nowS - 600 ? '1' : null),
      (atS) => (atS > nowS - 600 ? '1' : null),
    );
    gpu('GPU-b', '+Inf');
    const read = await metrics.read('last_1h', [
      subscription('1', [turn('GPU-a')]),
      subscription('2', [turn('GPU-b')]),
    ]);
    expect(read.get('1')).toEqual({ cpu_usage: 0, memory_usage: 50, gpu_utilization: 70, status: 'partial' });
    expect(read.get('2')).toEqual({ cpu_usage: 0, memory_usage: 0, gpu_utilization: 0, status: 'no_data' });
  });

  it.each(metricWindows)('are all counted in %s: a job of five minutes an hour shows 8.33 %', async (window) => {
    gpu('GPU-a', (atS) => (atS % 3_600 < 300 ? '100' : '0'));
    // The exporter names the pod while there is one, which makes two series of one device.
    gpu('GPU-b', (atS) => (atS % 3_600 < 300 ? '100' : null), { pod: 'job' });
    gpu('GPU-b', (atS) => (atS % 3_600 < 300 ? null : '0'));
    const read = await metrics.read(window, [subscription('1', [turn('GPU-a')]), subscription('2', [turn('GPU-b')])]);
    expect([...read.values()].map(({ gpu_utilization }) => gpu_utilization)).toEqual([8.33, 8.33]);
  });

  it('of some slices make a figure partial', async () => {
    cpu('1', '0.4');
    for (const UUID of ['GPU-a', 'GPU-b']) memory({ UUID }, '1', '1');
    gpu('GPU-a', '70');
    const read = await metrics.read('last_1h', [subscription('1', [turn('GPU-a'), turn('GPU-b')])]);
    expect(read.get('1')).toEqual({ cpu_usage: 40, memory_usage: 50, gpu_utilization: 70, status: 'partial' });
  });

  it('count from when the subscription became active, be it a moment ago and in a page with old ones', async () => {
    gpu('GPU-a', (atS) => (atS >= nowS - 7_200 ? '10' : '100'));
    // A restored database gives an id again.
    cpu('2', (atS) => (atS >= nowS - 7_200 ? '0.2' : '1'));
    const read = await metrics.read('last_30d', [
      subscription('1', [turn('GPU-a')]),
      subscription('2', [turn('GPU-a')], 7_200),
      subscription('3', [turn('GPU-a')], 60),
      subscription('4', [turn('GPU-a')], null),
    ]);
    expect(read.get('1')?.gpu_utilization).toBeGreaterThan(99);
    expect([...read.values()].slice(1).map(({ gpu_utilization }) => gpu_utilization)).toEqual([10, 10, 0]);
    expect(read.get('2')?.cpu_usage).toBe(20);
    expect(read.get('4')?.status).toBe('no_data');
  });
});

describe('what a subscription held', () => {
  const ours = (atS: number) => (atS > nowS - 7_200 && atS <= nowS - 3_600 ? '30' : '99');

  it('shows nothing of the tenants before and after it, however many there were', async () => {
    gpu('GPU-a', ours);
    memory({ UUID: 'GPU-a' }, ours, (atS) => String(100 - Number(ours(atS))));
    const slice = turn('GPU-a', { heldFrom: ago(7_200), heldUntil: ago(3_600) });
    for (const window of ['last_6h', 'last_30d'] as const) {
      const read = await metrics.read(window, [subscription('1', [slice]), subscription('2', [turn('GPU-a')])]);
      expect(read.get('1')).toEqual({ cpu_usage: 0, memory_usage: 30, gpu_utilization: 30, status: 'partial' });
      expect(read.get('2')?.gpu_utilization).toBeGreaterThan(80);
    }
  });

  it('begins after the sample of the instant at which it was given', async () => {
    gpu('GPU-a', (atS) => (atS <= nowS - 600 ? '99' : '10'));
    const read = await metrics.read('last_1h', [subscription('1', [turn('GPU-a', { heldFrom: ago(600) })])]);
    expect(read.get('1')?.gpu_utilization).toBe(10);
  });

  it('is shown after it has stopped, until it leaves the window', async () => {
    gpu('GPU-a', ours);
    const stopped = [subscription('1', [turn('GPU-a', { heldFrom: ago(7_200), heldUntil: ago(3_600) })], 7_200)];
    expect((await metrics.read('last_6h', stopped)).get('1')?.gpu_utilization).toBe(30);
    expect((await metrics.read('last_1h', stopped)).get('1')?.status).toBe('no_data');
  });

  it('weighs as much as the time for which it was held, and turns of one GPU once', async () => {
    gpu('GPU-a', '90');
    gpu('GPU-b', '10');
    const slices = [
      turn('GPU-a', { heldFrom: ago(3_600), heldUntil: ago(2_700) }),
      turn('GPU-b', { heldFrom: ago(2_700) }),
    ];
    const twice = [...slices, turn('GPU-b', { heldFrom: ago(1_800), heldUntil: ago(900) })];
    for (const held of [slices, twice]) {
      expect((await metrics.read('last_6h', [subscription('1', held)])).get('1')?.gpu_utilization).toBe(30);
    }
  });

  it('law: of slices that were held by turns each tenant sees its own level alone', async () => {
    const property = fc.asyncProperty(
      fc.array(fc.record({ minutes: fc.integer({ min: 3, max: 40 }), level: fc.integer({ min: 0, max: 100 }) }), {
        minLength: 1,
        maxLength: 12,
      }),
      fc.constantFrom('last_6h' as const, 'last_24h' as const),
      async (tenants, window) => {
        let endS = 0;
        const held = tenants.map(({ minutes, level }) => {
          const span = { fromS: endS + 60 * minutes, untilS: endS, level };
          endS = span.fromS;
          return span;
        });
        prometheus.series.length = 0;
        gpu('GPU-a', (atS) =>
          String(held.find(({ fromS, untilS }) => nowS - fromS < atS && atS <= nowS - untilS)?.level ?? 0),
        );
        const page = held.map(({ fromS, untilS }, at) =>
          subscription(String(at), [
            turn('GPU-a', { heldFrom: ago(fromS), heldUntil: untilS === 0 ? null : ago(untilS) }),
          ]),
        );
        const read = await source().read(window, page);
        for (const [at, { fromS, untilS, level }] of held.entries()) {
          const isOut = window === 'last_6h' && untilS >= 6 * 3_600;
          expect([fromS, read.get(String(at))]).toEqual([
            fromS,
            expect.objectContaining(isOut ? { status: 'no_data' } : { gpu_utilization: level }),
          ]);
        }
      },
    );
    await fc.assert(property, runs(20));
  });
});

describe('a page', () => {
  it('is one POST with a form, whatever it holds', async () => {
    const page = Array.from({ length: 100 }, (_, index) =>
      subscription(String(index), [turn(`GPU-${index}`), migSlice('GPU-m', index)]),
    );
    expect((await metrics.read('last_24h', page)).size).toBe(100);
    expect(prometheus.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /api/v1/query']);
  });

  it('of many subscriptions that began at many times is still one query of bounded length', async () => {
    gpu('GPU-a', '40');
    const many = Array.from({ length: 5_000 }, (_, at) =>
      subscription(
        String(at),
        [turn('GPU-a', { heldFrom: ago(1_200 + 500 * at), heldUntil: at % 2 === 0 ? null : ago(at % 600) })],
        1_200 + 500 * at,
      ),
    );
    const read = await metrics.read('last_30d', many);
    expect(prometheus.requests).toHaveLength(1);
    expect(prometheus.requests[0]!.form.get('query')!.length).toBeLessThan(1_000_000);
    const shown = [...read.values()].filter(({ status }) => status !== 'no_data');
    expect(shown.length).toBeGreaterThan(2_500);
    expect(new Set(shown.map(({ gpu_utilization }) => gpu_utilization))).toEqual(new Set([40]));
  });

  it('that is asked for again is not queried again', async () => {
    gpu('GPU-a', '40');
    const page = [subscription('1', [turn('GPU-a')])];
    const reads = await Promise.all([metrics.read('last_1h', page), metrics.read('last_1h', page)]);
    reads.push(await metrics.read('last_1h', page));
    expect(reads.map((read) => read.get('1')?.gpu_utilization)).toEqual([40, 40, 40]);
    expect(prometheus.requests).toHaveLength(1);
    await metrics.read('last_6h', page);
    await metrics.read('last_1h', [subscription('1', [turn('GPU-a', { heldFrom: new Date(nowMs - 60_000) })])]);
    expect(prometheus.requests).toHaveLength(3);
  });

  it('asks nothing where nothing was ever active', async () => {
    expect((await metrics.read('last_24h', [subscription('1', [turn('GPU-a')], null)])).get('1')?.status).toBe(
      'no_data',
    );
    expect((await metrics.read('last_24h', [])).size).toBe(0);
    expect(prometheus.requests).toEqual([]);
  });

  it('asks for values to the letter, whatever is in them', async () => {
    const odd = 'a"} or vector(1) \\ .*|x\n';
    gpu(odd, '30');
    gpu('anything', '90');
    const read = await metrics.read('last_1h', [subscription('1', [turn(odd)]), subscription('2', [turn('.*')])]);
    expect(read.get('1')?.gpu_utilization).toBe(30);
    expect(read.get('2')?.gpu_utilization).toBe(0);
  });
});
