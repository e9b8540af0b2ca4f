import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ago, allSimulated, migSlice, now, nowMs, nowS, subscription, turn } from './metrics-fixture.js';
import { startPrometheus, type FakePrometheus } from './prometheus-fixture.js';
import { PrometheusMetrics } from './prometheus-metrics.js';
import { SimulatedMetrics } from './simulated-metrics.js';

const minute = 60;
const hour = 3_600;
const utilization = (points: readonly { gpu_utilization: number | null }[]) =>
  points.map((point) => point.gpu_utilization);

describe('the course of a subscription, from Prometheus', () => {
  let prometheus: FakePrometheus;
  let metrics: PrometheusMetrics;
  beforeEach(async () => {
    prometheus = await startPrometheus();
    metrics = new PrometheusMetrics({ url: prometheus.url, now, coursePatienceMs: 60_000, deadlineMs: 60_000 });
  });
  afterEach(() => prometheus.stop());
  const store = (name: string, labels: Record<string, string>, at: (atS: number) => string | null) =>
    prometheus.series.push({ name, labels, at });

  it('has the average of each part of the window, the earliest first, by one query', async () => {
    store('DCGM_FI_DEV_GPU_UTIL', { UUID: 'GPU-a' }, (atS) => (atS > nowS - 30 * minute ? '90' : '10'));
    store('DCGM_FI_DEV_FB_USED', { UUID: 'GPU-a' }, () => '1');
    store('DCGM_FI_DEV_FB_FREE', { UUID: 'GPU-a' }, () => '3');
    const points = await metrics.course('last_1h', subscription('1', [turn('GPU-a')]), 4);
    expect(utilization(points)).toEqual([10, 10, 90, 90]);
    expect(points.map(({ memory_usage }) => memory_usage)).toEqual([25, 25, 25, 25]);
    expect(points.map(({ fromMs, untilMs }) => [nowMs - fromMs, nowMs - untilMs])).toEqual(
      [60, 45, 30, 15].map((begin) => [begin * 60_000, (begin - 15) * 60_000]),
    );
    expect(prometheus.requests).toHaveLength(1);
  });

  it('is null where nothing was held, and never shows who held it before or after', async () => {
    store('DCGM_FI_PROF_GR_ENGINE_ACTIVE', { UUID: 'GPU-a', GPU_I_ID: '7' }, (atS) =>
      atS > nowS - 4 * hour && atS <= nowS - 2 * hour ? '0.5' : '1',
    );
    const held = migSlice('GPU-a', 7, { heldFrom: ago(4 * hour), heldUntil: ago(2 * hour) });
    expect(utilization(await metrics.course('last_6h', subscription('1', [held]), 6))).toEqual([
      null,
      null,
      50,
      50,
      null,
      null,
    ]);
  });

  it('is null where Prometheus fails, and for what never was active, which asks nothing', async () => {
    prometheus.answer = (response) => response.writeHead(500).end();
    expect(utilization(await metrics.course('last_1h', subscription('1', [turn('GPU-a')]), 3))).toEqual([
      null,
      null,
      null,
    ]);
    const asked = prometheus.requests.length;
    expect(utilization(await metrics.course('last_1h', subscription('1', [turn('GPU-a')], null), 2))).toEqual([
      null,
      null,
    ]);
    expect(prometheus.requests).toHaveLength(asked);
  });

  it('takes half of the queries at most, so that listings are asked beside any number of courses', async () => {
    const pending: (() => void)[] = [];
    prometheus.answer = (response) => void pending.push(() => response.writeHead(500).end());
    const held = () => subscription('1', [turn('GPU-a')]);
    const courses = Array.from({ length: 12 }, () => metrics.course('last_1h', held(), 2));
    while (pending.length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
    const listing = metrics.read('last_24h', [held()]);
    while (pending.length < 5) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(prometheus.requests).toHaveLength(5);
    pending.splice(0).forEach((answer) => answer());
    await Promise.all([...courses, listing]);
  });

  it('does not wait for long where Prometheus hangs', async () => {
    prometheus.answer = () => undefined;
    // The query itself goes on for longer than the spec may take.
    const waiting = new PrometheusMetrics({ url: prometheus.url, now, deadlineMs: 3_600_000 });
    expect(utilization(await waiting.course('last_1h', subscription('1', [turn('GPU-a')]), 2))).toEqual([null, null]);
  });
});

describe('the course of a subscription, simulated', () => {
  it('is plausible within its life, the same for tenants of one GPU, and null before it', async () => {
    const metrics = new SimulatedMetrics(allSimulated, { now });
    const points = utilization(await metrics.course('last_24h', subscription('1', [turn('GPU-a')], 12 * hour), 30));
    expect(points.slice(0, 15)).toEqual(Array.from({ length: 15 }, () => null));
    for (const percent of points.slice(15)) {
      expect(percent).toBeGreaterThanOrEqual(5);
      expect(percent).toBeLessThanOrEqual(95);
    }
    expect(utilization(await metrics.course('last_24h', subscription('2', [turn('GPU-a')], 12 * hour), 30))).toEqual(
      points,
    );
  });

  it('is null while it is down', async () => {
    const metrics = new SimulatedMetrics(allSimulated, { now, isDown: () => true });
    expect(utilization(await metrics.course('last_1h', subscription('1', [turn('GPU-a')]), 2))).toEqual([null, null]);
  });
});
