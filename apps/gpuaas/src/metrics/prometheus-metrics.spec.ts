import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { metricWindows } from '@atoll/contracts';
import { migSlice, now, nowS, subscription, turn } from './metrics-fixture.js';
import { startPrometheus, type FakePrometheus } from './prometheus-fixture.js';
import { PrometheusMetrics } from './prometheus-metrics.js';

let prometheus: FakePrometheus;
let metrics: PrometheusMetrics;
beforeEach(async () => {
  prometheus = await startPrometheus();
  metrics = new PrometheusMetrics({ url: prometheus.url, now });
});
afterEach(() => prometheus.stop());

type At = string | ((atS: number) => string | null);
const store = (name: string, labels: Record<string, string>, at: At) =>
  prometheus.series.push({ name, labels, at: typeof at === 'string' ? () => at : at });
const cpu = (id: string, at: At) => store('atoll_subscription:cpu_usage:ratio_rate5m', { atoll_subscription_id: id }, at);
const gpu = (UUID: string, at: At, labels = {}) => store('DCGM_FI_DEV_GPU_UTIL', { UUID, ...labels }, at);
const memory = (labels: Record<string, string>, used: At, free: At) => {
  store('DCGM_FI_DEV_FB_USED', labels, used);
  store('DCGM_FI_DEV_FB_FREE', labels, free);
};

describe('figures from Prometheus', () => {
  it('are averages in percent with two decimals', async () => {
    cpu('1', '0.123456');
    gpu('GPU-a', (atS) => (atS > nowS - 1_800 ? '90' : '10'));
    memory({ UUID: 'GPU-a' }, '10', '20');
    const read = await metrics.read('last_1h', [subscription('1', [turn('GPU-a')])]);
    // 61 instants: 30 in the last half hour, and 31 before it
    expect(read.get('1')).toEqual({ cpu_usage: 12.35, memory_usage: 33.33, gpu_utilization: 49.34, status: 'ok' });
  });

  it('are those of the device where it is shared by turns or by MPS, for every tenant, averaged over the GPUs and never summed', async () => {
    gpu('GPU-a', '80');
    gpu('GPU-b', '20');
    const mps = { gpuUuid: 'GPU-a', mechanism: 'mps', mode: 'Spatial', gpuInstanceId: null } as const;
    const read = await metrics.read('last_6h', [
      subscription('1', [turn('GPU-a')]),
      subscription('2', [turn('GPU-a'), turn('GPU-a'), turn('GPU-b')]),
      subscription('3', [mps]),
    ]);
    expect([...read.values()].map(({ gpu_utilization }) => gpu_utilization)).toEqual([80, 50, 80]);
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

  it('are those of the device on a MIG GPU that fell back to time slicing', async () => {
    gpu('GPU-a', '60');
    const read = await metrics.read('last_24h', [subscription('1', [{ ...migSlice('GPU-a', null), mode: 'Temporal' }])]);
    expect(read.get('1')).toMatchObject({ gpu_utilization: 60, status: 'partial' });
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
  it('are no samples where they are NaN or infinite, and gaps are not zeros', async () => {
    cpu('1', (atS) => (atS > nowS - 600 ? '0.4' : 'NaN'));
    gpu('GPU-a', (atS) => (atS > nowS - 600 ? '70' : null));
    memory(
      { UUID: 'GPU-a' },
      (atS) => (atS > nowS - 600 ? '1' : '0'),
      (atS) => (atS > nowS - 600 ? '1' : '0'),
    );
    gpu('GPU-b', '+Inf');
    const read = await metrics.read('last_1h', [subscription('1', [turn('GPU-a')]), subscription('2', [turn('GPU-b')])]);
    expect(read.get('1')).toEqual({ cpu_usage: 40, memory_usage: 50, gpu_utilization: 70, status: 'ok' });
    expect(read.get('2')).toEqual({ cpu_usage: 0, memory_usage: 0, gpu_utilization: 0, status: 'no_data' });
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
    const read = await metrics.read('last_30d', [
      subscription('1', [turn('GPU-a')]),
      subscription('2', [turn('GPU-a')], 7_200),
      subscription('3', [turn('GPU-a')], 0),
      subscription('4', [turn('GPU-a')], null),
    ]);
    expect(read.get('1')?.gpu_utilization).toBeGreaterThan(99);
    expect([...read.values()].slice(1).map(({ gpu_utilization }) => gpu_utilization)).toEqual([10, 10, 0]);
    expect(read.get('4')?.status).toBe('no_data');
  });
});

describe('a page', () => {
  it('is one POST with a form, whatever it holds', async () => {
    const page = Array.from({ length: 100 }, (_, index) => subscription(String(index), [turn(`GPU-${index}`), migSlice('GPU-m', index)]));
    expect((await metrics.read('last_24h', page)).size).toBe(100);
    expect(prometheus.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /api/v1/query_range']);
  });

  it.each(metricWindows)('asks for 601 points a series at most in %s, a minute apart or more', async (window) => {
    await metrics.read(window, [subscription('1', [turn('GPU-a')])]);
    const [startS, endS, stepS] = ['start', 'end', 'step'].map((name) => Number(prometheus.requests[0]?.form.get(name)));
    expect(stepS).toBeGreaterThanOrEqual(60);
    expect((endS! - startS!) / stepS!).toBeLessThanOrEqual(600);
    expect(endS).toBe(nowS);
  });

  it('asks nothing where nothing was ever active', async () => {
    expect((await metrics.read('last_24h', [subscription('1', [turn('GPU-a')], null)])).get('1')?.status).toBe('no_data');
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
