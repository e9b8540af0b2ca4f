import type { MetricWindow } from '@atoll/contracts';
import { Logger } from '@nestjs/common';
import { averages, noData, type SamplesOf } from './averages.js';
import { MetricsSource, type MeasuredSubscription, type SubscriptionMetrics } from './metrics-source.js';
import { pageQuery } from './page-query.js';
import { samplesOfAnswer } from './prometheus-answer.js';
import { PrometheusClient, PrometheusFault } from './prometheus-client.js';
import { measuredFromMs, timeline } from './timeline.js';

export interface PrometheusMetricsOptions {
  /** `http(s)://[user:password@]host[:port][/path]` */
  readonly url: string;
  /** 2 s unless given. */
  readonly deadlineMs?: number;
  readonly now?: () => number;
}

const stepsAtMost = 600;
/** Bounds the answer to some 6 MB: a long page is measured at fewer instants. */
const pointsAtMost = 200_000;

/**
 * Figures from Prometheus, by one `query_range` for a page. What an operator must have there:
 *
 * - GPUs: NVIDIA's dcgm-exporter with its labels `UUID` (of the physical GPU) and, on MIG instances, `GPU_I_ID`; the fields
 *   `DCGM_FI_DEV_GPU_UTIL`, `DCGM_FI_DEV_FB_USED`, `DCGM_FI_DEV_FB_FREE` and, for MIG, where `GPU_UTIL` does not exist,
 *   `DCGM_FI_PROF_GR_ENGINE_ACTIVE`, which its default list leaves out on some versions.
 *   https://docs.nvidia.com/datacenter/dcgm/latest/gpu-telemetry/dcgm-exporter.html
 * - CPU: pods labelled `atoll_subscription_id`; kube-state-metrics with `--metric-labels-allowlist=pods=[atoll_subscription_id]`; cAdvisor
 *   (the kubelet has it); and this recording rule, what a subscription's pods use of their limits. As a rule, because cAdvisor does not
 *   know the labels of pods, and to join all containers of a cluster for each page takes longer than a page may.
 *
 * ```yaml
 * - record: atoll_subscription:cpu_usage:ratio_rate5m
 *   expr: |
 *     label_replace(
 *       sum by (label_atoll_subscription_id) (
 *         max by (namespace, pod, container) (rate(container_cpu_usage_seconds_total{container!=""}[5m]))
 *         * on (namespace, pod) group_left (label_atoll_subscription_id)
 *         max by (namespace, pod, label_atoll_subscription_id) (kube_pod_labels{label_atoll_subscription_id!=""})
 *       )
 *       / sum by (label_atoll_subscription_id) (
 *         max by (namespace, pod, container) (kube_pod_container_resource_limits{resource="cpu"})
 *         * on (namespace, pod) group_left (label_atoll_subscription_id)
 *         max by (namespace, pod, label_atoll_subscription_id) (kube_pod_labels{label_atoll_subscription_id!=""})
 *       ),
 *       "atoll_subscription_id", "$1", "label_atoll_subscription_id", "(.+)"
 *     )
 * ```
 */
export class PrometheusMetrics extends MetricsSource {
  readonly #logger = new Logger(PrometheusMetrics.name);
  readonly #client: PrometheusClient;
  readonly #now: () => number;
  #isOut = false;

  constructor({ url, deadlineMs = 2_000, now = Date.now }: PrometheusMetricsOptions) {
    super();
    this.#client = new PrometheusClient(url, deadlineMs);
    this.#now = now;
  }

  override async read(window: MetricWindow, subscriptions: readonly MeasuredSubscription[]): Promise<Map<string, SubscriptionMetrics>> {
    const nowMs = this.#now();
    const spans = subscriptions.flatMap((subscription) => {
      const fromMs = measuredFromMs(subscription, window, nowMs);
      return fromMs === null ? [] : [{ subscription, fromMs }];
    });
    const result = new Map(subscriptions.map(({ subscriptionId }) => [subscriptionId, noData]));
    if (spans.length === 0) return result;
    const oldestMs = spans.reduce((least, { fromMs }) => Math.min(least, fromMs), nowMs);
    const measured = spans.map(({ subscription }) => subscription);
    const samplesOf = await this.#ask(measured, oldestMs, nowMs);
    if (!samplesOf) return result;
    for (const { subscription, fromMs } of spans) result.set(subscription.subscriptionId, averages(subscription, fromMs, nowMs, samplesOf));
    return result;
  }

  async #ask(subscriptions: readonly MeasuredSubscription[], fromMs: number, nowMs: number): Promise<SamplesOf | null> {
    const { expression, seriesAtMost } = pageQuery(subscriptions);
    const steps = Math.max(1, Math.min(stepsAtMost, Math.floor(pointsAtMost / seriesAtMost)));
    try {
      const samplesOf = samplesOfAnswer(await this.#client.queryRange(expression, timeline(fromMs, nowMs, steps)));
      if (!samplesOf) throw new PrometheusFault('the answer is not a matrix');
      this.#note(null);
      return samplesOf;
    } catch (error) {
      this.#note(error instanceof PrometheusFault ? error.message : 'it failed');
      return null;
    }
  }

  /** Says once that an outage begins, and once that it is over. */
  #note(fault: string | null): void {
    if (fault !== null && !this.#isOut) this.#logger.warn(`Prometheus gives no metrics: ${fault}`);
    if (fault === null && this.#isOut) this.#logger.log('Prometheus gives metrics again');
    this.#isOut = fault !== null;
  }
}
