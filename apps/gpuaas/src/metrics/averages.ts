import type { MeasuredSlice, MeasuredSubscription, SubscriptionMetrics } from './metrics-source.js';

export const figures = ['cpu_usage', 'memory_usage', 'gpu_utilization'] as const;
export type Figure = (typeof figures)[number];

export interface Sample {
  readonly atMs: number;
  readonly percent: number;
}

/** What was measured of a figure: for the CPU by subscription, for GPUs by GPU or MIG instance, see `seriesOf`. */
export type SamplesOf = (figure: Figure, series: string) => readonly Sample[];

/** Whether the slice has figures of its own. All else shows those of its GPU: DCGM cannot tell apart who shares by MPS or by turns. */
export function isMigInstance({ mechanism, mode }: MeasuredSlice): boolean {
  return mechanism === 'mig' && mode === 'Spatial';
}

/** The GPU by its UUID, a MIG instance by the GPU's UUID and its id. */
function seriesOf(slice: MeasuredSlice): string {
  return isMigInstance(slice) ? `${slice.gpuUuid}/${slice.gpuInstanceId}` : slice.gpuUuid;
}

/**
 * The averages of a subscription over the samples within [fromMs, nowMs]. Each of its GPUs or MIG instances weighs the same, whatever gaps
 * it has, and counts once, however many turns of it are held: a device's figure is never summed.
 */
export function averages(subscription: MeasuredSubscription, fromMs: number, nowMs: number, samplesOf: SamplesOf): SubscriptionMetrics {
  const slices = [...new Set(subscription.slices.map(seriesOf))];
  const measured = (figure: Figure, series: readonly string[]) => {
    const means = series.map((one) => mean(samplesOf(figure, one).filter(({ atMs }) => atMs >= fromMs && atMs <= nowMs)));
    const known = means.filter((percent) => percent !== null);
    return { average: twoDecimals(known), isWhole: known.length > 0 && known.length === means.length, isEmpty: known.length === 0 };
  };
  const cpu = measured('cpu_usage', [subscription.subscriptionId]);
  const memory = measured('memory_usage', slices);
  const gpu = measured('gpu_utilization', slices);
  const all = [cpu, memory, gpu];
  return {
    cpu_usage: cpu.average,
    memory_usage: memory.average,
    gpu_utilization: gpu.average,
    status: all.every(({ isEmpty }) => isEmpty) ? 'no_data' : all.every(({ isWhole }) => isWhole) ? 'ok' : 'partial',
  };
}

export const noData: SubscriptionMetrics = { cpu_usage: 0, memory_usage: 0, gpu_utilization: 0, status: 'no_data' };

function mean(samples: readonly Sample[]): number | null {
  return samples.length === 0 ? null : samples.reduce((sum, { percent }) => sum + percent, 0) / samples.length;
}

function twoDecimals(means: readonly number[]): number {
  if (means.length === 0) return 0;
  return Math.round((means.reduce((sum, percent) => sum + percent, 0) / means.length) * 100) / 100;
}
