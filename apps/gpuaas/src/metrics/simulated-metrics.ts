import { createHash } from 'node:crypto';
import type { MetricWindow } from '@atoll/contracts/gpuaas';
import { averages, noData, type Figure, type GpuFigure } from './averages.js';
import { courseOf, partsOf } from './course.js';
import {
  seriesOf,
  MetricsSource,
  type CoursePoint,
  type MeasuredSubscription,
  type MigInstance,
  type SubscriptionMetrics,
} from './metrics-source.js';
import { spansOf, type Span } from './spans.js';
import { windowMs } from './windows.js';

export interface SimulatedMetricsOptions {
  readonly now?: () => number;
  /** Everything is `no_data` while this is true. */
  readonly isDown?: () => boolean;
  /** True where a sample is missing. */
  readonly isGap?: (figure: Figure, series: string, atMs: number) => boolean;
}

const dayMs = 86_400_000;
const wobbleMs = 37 * 60_000;

/** Returns those of these GPU services whose cluster is simulated. */
export type SimulatedAmong = (gpuaasIds: readonly string[]) => Promise<ReadonlySet<string>>;

/**
 * Plausible figures of GPUs that do not exist: the same for the same question at the same time. Each series has a level
 * of its own and goes up and down with the day; tenants of one GPU see one figure, as with a real one. Nothing is made
 * up where pods are real: `no_data`.
 */
export class SimulatedMetrics extends MetricsSource {
  readonly #options: Required<SimulatedMetricsOptions>;

  constructor(
    private readonly simulatedAmong: SimulatedAmong,
    options: SimulatedMetricsOptions = {},
  ) {
    super();
    this.#options = { now: Date.now, isDown: () => false, isGap: () => false, ...options };
  }

  override async read(
    window: MetricWindow,
    subscriptions: readonly MeasuredSubscription[],
  ): Promise<Map<string, SubscriptionMetrics>> {
    const simulated = await this.#simulated(subscriptions);
    const nowMs = this.#options.now();
    const isDown = this.#options.isDown();
    const one = (subscription: MeasuredSubscription): SubscriptionMetrics => {
      const measured = spansOf(subscription, window, nowMs);
      if (measured === undefined || isDown || !simulated.has(subscription.gpuaasId)) return noData;
      const cpuFromMs = Math.max(nowMs - windowMs[window], subscription.activeSince?.getTime() ?? nowMs);
      return averages(measured, {
        cpu: (subscriptionId) => this.#mean('cpu_usage', subscriptionId, cpuFromMs, nowMs),
        gpu: (figure, span) => this.#mean(figure, seriesOf(span), span.fromMs, span.untilMs),
      });
    };
    return new Map(subscriptions.map((subscription) => [subscription.subscriptionId, one(subscription)]));
  }

  override async course(
    window: MetricWindow,
    subscription: MeasuredSubscription,
    count: number,
  ): Promise<CoursePoint[]> {
    const isSimulated = (await this.#simulated([subscription])).has(subscription.gpuaasId);
    const isUnknown = this.#options.isDown() || !isSimulated;
    const percentOf = (figure: GpuFigure, span: Span) =>
      isUnknown ? null : this.#mean(figure, seriesOf(span), span.fromMs, span.untilMs);
    return courseOf(partsOf(window, subscription, count, this.#options.now()), percentOf);
  }

  override async peaks(instances: readonly MigInstance[], seconds: number): Promise<Map<string, number>> {
    if (this.#options.isDown()) return new Map();
    const simulated = await this.#simulated(instances);
    const nowMs = this.#options.now();
    const peakOf = (series: string) => {
      const percentAt = wave(`gpu_utilization ${series}`);
      return Math.max(percentAt(nowMs - seconds * 1_000), percentAt(nowMs));
    };
    const known = instances.filter(({ gpuaasId }) => simulated.has(gpuaasId));
    return new Map(known.map((instance) => [seriesOf(instance), instance.isIdle ? 0 : peakOf(seriesOf(instance))]));
  }

  #simulated(asked: readonly { readonly gpuaasId: string }[]): Promise<ReadonlySet<string>> {
    return this.simulatedAmong([...new Set(asked.map(({ gpuaasId }) => gpuaasId))]);
  }

  /** The average of at most 61 samples at equal distances of a minute or more, the last of which is the latest. */
  #mean(figure: Figure, series: string, fromMs: number, untilMs: number): number | null {
    const percentAt = wave(`${figure} ${series}`);
    const stepMs = Math.max(60_000, Math.ceil((untilMs - fromMs) / 60));
    const samples: number[] = [];
    for (let atMs = untilMs; atMs >= fromMs; atMs -= stepMs)
      if (!this.#options.isGap(figure, series, atMs)) samples.push(percentAt(atMs));
    return samples.length === 0 ? null : samples.reduce((sum, percent) => sum + percent, 0) / samples.length;
  }
}

/**
 * A level of 30 to 70, up to 20 more or less in the course of the day, and up to 5 in that of the hour: always within 5
 * and 95.
 */
function wave(seed: string): (atMs: number) => number {
  const bytes = createHash('sha256').update(seed).digest();
  const share = (index: number) => bytes.readUInt32BE(4 * index) / 2 ** 32;
  const turn = (atMs: number, periodMs: number, phase: number) => Math.sin(2 * Math.PI * (atMs / periodMs + phase));
  const [level, swing] = [30 + 40 * share(0), 10 + 10 * share(1)];
  return (atMs) => level + swing * turn(atMs, dayMs, share(2)) + 5 * turn(atMs, wobbleMs, share(3));
}
