import { describe, expect, it } from '@jest/globals';
import { metricWindows } from '@atoll/contracts/gpuaas';
import fc from 'fast-check';
import { allSimulated, gpuaasId, migSlice, now, nowMs, subscription, turn } from './metrics-fixture.js';
import { SimulatedMetrics } from './simulated-metrics.js';

describe('simulated figures', () => {
  it('law: they are plausible, and the same for the same subscription, window and time', async () => {
    const property = fc.asyncProperty(
      fc.constantFrom(...metricWindows),
      fc.nat().map(String),
      fc.uuid(),
      // From its first second on: at the very instant it has no span to take an average of.
      fc.integer({ min: 1, max: 90 * 86_400 }),
      fc.integer({ min: nowMs, max: 2 * nowMs }),
      async (window, id, gpuUuid, activeForS, atMs) => {
        const page = [subscription(id, [turn(gpuUuid)], activeForS)];
        const read = async () =>
          (await new SimulatedMetrics(allSimulated, { now: () => atMs }).read(window, page)).get(id)!;
        const metrics = await read();
        expect(await read()).toEqual(metrics);
        expect(metrics.status).toBe('ok');
        for (const percent of [metrics.cpu_usage, metrics.memory_usage, metrics.gpu_utilization]) {
          expect(percent).toBeGreaterThanOrEqual(5);
          expect(percent).toBeLessThanOrEqual(95);
          expect(Number(percent.toFixed(2))).toBe(percent);
        }
      },
    );
    await fc.assert(property, { numRuns: 50 });
  });

  it('are the same GPU figures for the tenants of one GPU, and others for each MIG slice', async () => {
    const page = [
      subscription('1', [turn('GPU-a')]),
      subscription('2', [turn('GPU-a'), turn('GPU-a')]),
      subscription('3', [migSlice('GPU-b', 7)]),
      subscription('4', [migSlice('GPU-b', 8)]),
    ];
    const read = [...(await new SimulatedMetrics(allSimulated, { now }).read('last_24h', page)).values()];
    const [first, second, third, fourth] = read;
    expect(second?.gpu_utilization).toBe(first?.gpu_utilization);
    expect(second?.memory_usage).toBe(first?.memory_usage);
    expect(second?.cpu_usage).not.toBe(first?.cpu_usage);
    expect(fourth?.gpu_utilization).not.toBe(third?.gpu_utilization);
  });

  it('are averages over the life of what is younger than the window', async () => {
    const young = [subscription('1', [turn('GPU-a')], 1_200)];
    const metrics = new SimulatedMetrics(allSimulated, { now });
    const reads = await Promise.all(metricWindows.map(async (window) => (await metrics.read(window, young)).get('1')));
    expect(new Set(reads.map((read) => JSON.stringify(read))).size).toBe(1);
    expect(reads[0]).not.toEqual((await metrics.read('last_24h', [subscription('1', [turn('GPU-a')])])).get('1'));
  });

  it('are no data for what never was active', async () => {
    const read = await new SimulatedMetrics(allSimulated, { now }).read('last_24h', [
      subscription('1', [turn('GPU-a')], null),
    ]);
    expect(read.get('1')).toEqual({ cpu_usage: 0, memory_usage: 0, gpu_utilization: 0, status: 'no_data' });
  });

  it('are partial for an entitlement that holds no slice', async () => {
    const read = await new SimulatedMetrics(allSimulated, { now }).read('last_24h', [subscription('1', [])]);
    expect(read.get('1')).toMatchObject({ memory_usage: 0, gpu_utilization: 0, status: 'partial' });
  });

  it('are partial for what held more than is known', async () => {
    const page = [{ ...subscription('1', [turn('GPU-a')]), isWhole: false }];
    const read = await new SimulatedMetrics(allSimulated, { now }).read('last_24h', page);
    expect(read.get('1')).toMatchObject({ status: 'partial', gpu_utilization: expect.any(Number) });
  });

  it('have peaks as other figures, and none where the pod is idle', async () => {
    const [used, idle] = [
      { gpuaasId, gpuUuid: 'GPU-a', gpuInstanceId: 7 },
      { gpuaasId, gpuUuid: 'GPU-a', gpuInstanceId: 8, isIdle: true },
    ];
    const peaks = await new SimulatedMetrics(allSimulated, { now }).peaks([used, idle], 150);
    expect(peaks.get('GPU-a/7')).toBeGreaterThanOrEqual(5);
    expect(peaks.get('GPU-a/8')).toBe(0);
  });

  it('fail and have gaps where a spec wants it', async () => {
    const page = [subscription('1', [turn('GPU-a')])];
    const down = await new SimulatedMetrics(allSimulated, { now, isDown: () => true }).read('last_24h', page);
    expect(down.get('1')?.status).toBe('no_data');
    const holey = await new SimulatedMetrics(allSimulated, { now, isGap: (figure) => figure === 'cpu_usage' }).read(
      'last_24h',
      page,
    );
    expect(holey.get('1')).toMatchObject({ cpu_usage: 0, status: 'partial' });
    const sparse = await new SimulatedMetrics(allSimulated, {
      now,
      isGap: (_figure, _series, atMs) => atMs !== nowMs,
    }).read('last_24h', page);
    expect(sparse.get('1')?.status).toBe('ok');
  });
});
