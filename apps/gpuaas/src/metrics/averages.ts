import type { SubscriptionMetrics } from './metrics-source.js';
import type { MeasuredSpans, Span } from './spans.js';

export const figures = ['cpu_usage', 'memory_usage', 'gpu_utilization'] as const;
export type Figure = (typeof figures)[number];
export type GpuFigure = Exclude<Figure, 'cpu_usage'>;

/** Averages in percent; null where there is no sample. */
export interface Means {
  /** Of the samples of a subscription within the window. */
  cpu(subscriptionId: string): number | null;
  /** Of the samples of a GPU, or a MIG instance, within a span. */
  gpu(figure: GpuFigure, span: Span): number | null;
}

/**
 * The figures of a subscription. Each of its GPUs, or MIG instances, weighs as much as the time for which it was held,
 * whatever gaps its samples have. A device's figure is never summed.
 */
export function averages({ subscriptionId, spans, isWhole }: MeasuredSpans, means: Means): SubscriptionMetrics {
  const cpu = means.cpu(subscriptionId);
  const gpu = (figure: GpuFigure) => {
    const known = knownOf(spans, (span) => means.gpu(figure, span));
    return {
      average: weighted(known),
      isWhole: isWhole && known.length > 0 && known.length === spans.length,
      isEmpty: known.length === 0,
    };
  };
  const [memory, utilization] = [gpu('memory_usage'), gpu('gpu_utilization')];
  const isEmpty = cpu === null && memory.isEmpty && utilization.isEmpty;
  return {
    cpu_usage: twoDecimals(cpu ?? 0),
    memory_usage: twoDecimals(memory.average),
    gpu_utilization: twoDecimals(utilization.average),
    status: isEmpty ? 'no_data' : cpu !== null && memory.isWhole && utilization.isWhole ? 'ok' : 'partial',
  };
}

/** The average over spans, each as heavy as it is long, with two decimals; null where none of them has a sample. */
export function meanOf(spans: readonly Span[], percentOf: (span: Span) => number | null): number | null {
  const known = knownOf(spans, percentOf);
  return known.length === 0 ? null : twoDecimals(weighted(known));
}

interface Known {
  readonly percent: number;
  readonly ms: number;
}

function knownOf(spans: readonly Span[], percentOf: (span: Span) => number | null): Known[] {
  return spans.flatMap((span) => {
    const percent = percentOf(span);
    return percent === null ? [] : [{ percent, ms: span.untilMs - span.fromMs }];
  });
}

function weighted(known: readonly Known[]): number {
  const allMs = known.reduce((sum, { ms }) => sum + ms, 0);
  return known.reduce((sum, { percent, ms }) => sum + percent * (ms / allMs), 0);
}

export const noData: SubscriptionMetrics = { cpu_usage: 0, memory_usage: 0, gpu_utilization: 0, status: 'no_data' };

function twoDecimals(percent: number): number {
  return Math.round(percent * 100) / 100;
}
