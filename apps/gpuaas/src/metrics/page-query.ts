import type { GpuFigure, Figure } from './averages.js';
import type { MigInstance } from './metrics-source.js';
import type { MeasuredSpans, Span } from './spans.js';

/** Labels that distinguish the figures of one response. */
export const figureLabel = 'atoll_figure';
export const spanLabel = 'atoll_span';
export const subscriptionLabel = 'atoll_subscription_id';
const cpuShare = 'atoll_subscription:cpu_usage:ratio_rate5m';

/** Times that one query asks about, at most: each takes some hundred characters, and its own look at the samples. */
const maxTimes = 400;

type Time = Pick<Span, 'fromMs' | 'untilMs'>;

export interface PageQuery {
  readonly expression: string;
  /** The value of `atoll_span` for a span; undefined: it is not asked about. */
  readonly placeOf: (span: Span) => string | undefined;
}

/**
 * One PromQL expression, to be evaluated at `nowMs`, for all figures of subscriptions, each in percent. Spans of the
 * same time share a term. An average is the sum of all samples by their number, so that it is exact whatever the window
 * is, and an exporter whose labels name a device's pods, or a scraper that runs twice, changes nothing.
 */
export function pageQuery(
  subscriptions: readonly Pick<MeasuredSpans, 'subscriptionId' | 'fromMs'>[],
  spans: readonly Span[],
  nowMs: number,
): PageQuery {
  const active = timesOf(subscriptions.map((each) => ({ ...each, untilMs: nowMs })));
  const { times, placeOf } = timesOf(spans);
  const parts = [...active.times.values()].map(({ time, of }) => cpuTerm(of, rangeOf(time, nowMs)));
  for (const [place, { time, of }] of times) {
    const range = rangeOf(time, nowMs);
    const devices = unique(of.filter(({ gpuInstanceId }) => gpuInstanceId === null).map(({ gpuUuid }) => gpuUuid));
    const cut = of.filter(({ gpuInstanceId }) => gpuInstanceId !== null);
    if (devices.length > 0) {
      const labels = `UUID=~${anyOf(devices)},GPU_I_ID=""`;
      parts.push(...gpuTerms({ place, labels, range, utilization: 'DCGM_FI_DEV_GPU_UTIL', factor: '' }));
    }
    if (cut.length > 0) {
      // More than was asked for where GPUs have instances of the same ids; the reader of the answer chooses.
      const ids = unique(cut.map(({ gpuInstanceId }) => String(gpuInstanceId)));
      const labels = `UUID=~${anyOf(unique(cut.map(({ gpuUuid }) => gpuUuid)))},GPU_I_ID=~${anyOf(ids)}`;
      parts.push(...gpuTerms({ place, labels, range, utilization: 'DCGM_FI_PROF_GR_ENGINE_ACTIVE', factor: '100 * ' }));
    }
  }
  return { expression: parts.join(' or '), placeOf };
}

/**
 * One PromQL expression for the greatest sample of the utilization of MIG instances, in percent; of more instances than
 * were asked for.
 */
export function peakQuery(instances: readonly MigInstance[], seconds: number): string {
  const ids = anyOf(unique(instances.map(({ gpuInstanceId }) => String(gpuInstanceId))));
  const labels = `UUID=~${anyOf(unique(instances.map(({ gpuUuid }) => gpuUuid)))},GPU_I_ID=~${ids}`;
  return named(
    'gpu_utilization',
    '',
    `100 * max by (UUID, GPU_I_ID) (max_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{${labels}}[${seconds}s]))`,
  );
}

/** The times of the spans. Where they are too many they are made alike, and then the shortest are left out. */
function timesOf<Of extends Time>(
  spans: readonly Of[],
): {
  times: Map<string, { time: Time; of: Of[] }>;
  placeOf: (span: Of) => string | undefined;
} {
  const grouped = (timeOf: (span: Of) => Time) =>
    Map.groupBy(spans, (span) => {
      const { fromMs, untilMs } = timeOf(span);
      return `${fromMs}-${untilMs}`;
    });
  let timeOf = (span: Of): Time => span;
  let groups = grouped(timeOf);
  if (groups.size > maxTimes) groups = grouped((timeOf = coarse));
  const chosen = [...groups.values()]
    .flatMap(([first, ...others]) => (first ? [{ time: timeOf(first), of: [first, ...others] }] : []))
    .toSorted((one, other) => lengthOf(other.time) - lengthOf(one.time))
    .slice(0, maxTimes);
  const times = new Map(chosen.map((each, at) => [String(at), each]));
  const places = new Map(chosen.flatMap(({ of }, at) => of.map((span) => [span, String(at)] as const)));
  return { times, placeOf: (span) => places.get(span) };
}

/** A time within this one, shorter by less than a sixteenth, whose ends many times share. */
function coarse({ fromMs, untilMs }: Time): Time {
  const gridMs = 2 ** Math.max(0, Math.floor(Math.log2(untilMs - fromMs)) - 5);
  return { fromMs: Math.ceil(fromMs / gridMs) * gridMs, untilMs: Math.floor(untilMs / gridMs) * gridMs };
}

function lengthOf({ fromMs, untilMs }: Time): number {
  return untilMs - fromMs;
}

/**
 * The samples after `fromMs`, until `untilMs`. A range of Prometheus 2 includes its first instant, which is another
 * tenant's.
 */
function rangeOf({ fromMs, untilMs }: Time, nowMs: number): string {
  const range = `[${Math.max(1, untilMs - fromMs - 1)}ms]`;
  return untilMs === nowMs ? range : `${range} @ ${(untilMs / 1_000).toFixed(3)}`;
}

function cpuTerm(subscriptions: readonly { readonly subscriptionId: string }[], range: string): string {
  const ids = anyOf(unique(subscriptions.map(({ subscriptionId }) => subscriptionId)));
  const [sum, count] = sumAndCount(`${cpuShare}{${subscriptionLabel}=~${ids}}${range}`, subscriptionLabel);
  return named('cpu_usage', '', `100 * ${sum} / ${count}`);
}

interface GpuTerms {
  readonly place: string;
  readonly labels: string;
  readonly range: string;
  /** The metric of the utilization, and what makes percent of it. */
  readonly utilization: string;
  readonly factor: string;
}

function gpuTerms({ place, labels, range, utilization, factor }: GpuTerms): string[] {
  const of = (name: string) => sumAndCount(`${name}{${labels}}${range}`, 'UUID, GPU_I_ID');
  const [[sum, count], [used], [free]] = [of(utilization), of('DCGM_FI_DEV_FB_USED'), of('DCGM_FI_DEV_FB_FREE')];
  const figure = (name: GpuFigure, expression: string) => named(name, place, expression);
  return [
    figure('gpu_utilization', `${factor}${sum} / ${count}`),
    figure('memory_usage', `100 * ${used} / (${used} + ${free})`),
  ];
}

function sumAndCount(selector: string, by: string): [string, string] {
  return [`sum by (${by}) (sum_over_time(${selector}))`, `sum by (${by}) (count_over_time(${selector}))`];
}

function named(figure: Figure, place: string, expression: string): string {
  const ofFigure = `label_replace(${expression}, "${figureLabel}", "${figure}", "", "")`;
  return place === '' ? ofFigure : `label_replace(${ofFigure}, "${spanLabel}", "${place}", "", "")`;
}

/**
 * A PromQL string that matches each of the values and nothing else. JSON's escapes are among those of Go, which PromQL
 * has.
 */
function anyOf(values: readonly string[]): string {
  return JSON.stringify(values.map((value) => value.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'));
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}
