import type { MetricWindow } from '@atoll/contracts/gpuaas';
import { meanOf, type GpuFigure } from './averages.js';
import type { CoursePoint, MeasuredSubscription } from './metrics-source.js';
import { spansOf, type Span } from './spans.js';
import { windowMs } from './windows.js';

/** A part of a window, and what was held in it. */
export interface CoursePart {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly spans: readonly Span[];
}

/** The window that ends now in `count` parts of equal length, each with the spans of the subscription within it. */
export function partsOf(
  window: MetricWindow,
  subscription: MeasuredSubscription,
  count: number,
  nowMs: number,
): CoursePart[] {
  const spans = spansOf(subscription, window, nowMs)?.spans ?? [];
  const beginMs = nowMs - windowMs[window];
  const boundMs = (at: number) => Math.round(beginMs + (windowMs[window] * at) / count);
  return Array.from({ length: count }, (_, at) => {
    const [fromMs, untilMs] = [boundMs(at), boundMs(at + 1)];
    return { fromMs, untilMs, spans: spans.flatMap((span) => within(span, fromMs, untilMs)) };
  });
}

function within(span: Span, fromMs: number, untilMs: number): Span[] {
  const cut = { ...span, fromMs: Math.max(span.fromMs, fromMs), untilMs: Math.min(span.untilMs, untilMs) };
  return cut.fromMs < cut.untilMs ? [cut] : [];
}

/** The averages of each part. */
export function courseOf(
  parts: readonly CoursePart[],
  percentOf: (figure: GpuFigure, span: Span) => number | null,
): CoursePoint[] {
  return parts.map(({ fromMs, untilMs, spans }) => ({
    fromMs,
    untilMs,
    gpu_utilization: meanOf(spans, (span) => percentOf('gpu_utilization', span)),
    memory_usage: meanOf(spans, (span) => percentOf('memory_usage', span)),
  }));
}
