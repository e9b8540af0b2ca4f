import { createHash } from 'node:crypto';
import type { MetricWindow } from '@atoll/contracts/gpuaas';
import { withPatience } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import { averages, noData, type GpuFigure, type Means } from './averages.js';
import { courseOf, partsOf, type CoursePart } from './course.js';
import {
  seriesOf,
  MetricsSource,
  type CoursePoint,
  type MeasuredSubscription,
  type MigInstance,
  type SubscriptionMetrics,
} from './metrics-source.js';
import { pageQuery, peakQuery } from './page-query.js';
import { valuesOfAnswer } from './prometheus-answer.js';
import { PrometheusClient, PrometheusFault } from './prometheus-client.js';
import { RecentAnswers } from './recent-answers.js';
import { spansOf, type Span } from './spans.js';

export interface PrometheusMetricsOptions {
  /** `http(s)://[user:password@]host[:port][/path]` */
  readonly url: string;
  /** How long a query may take. Default 10 s. */
  readonly deadlineMs?: number;
  /** How long a listing waits for it. Default 250 ms. */
  readonly patienceMs?: number;
  /** How long the course of a subscription is waited for. Default 2 s. */
  readonly coursePatienceMs?: number;
  readonly now?: () => number;
}

type PageMetrics = ReadonlyMap<string, SubscriptionMetrics>;

/** Queries under way at once; while Prometheus is slow, one. */
const maxQueries = 8;
/** Of these for courses, each of which may take long: the others are left to listings. */
const maxCourses = 4;
/** For this long after a listing has waited in vain, listings do not wait. */
const slowForMs = 10_000;

/**
 * Figures from Prometheus, by one query for a page. An operator must have there:
 *
 * - GPUs: NVIDIA's dcgm-exporter with its labels `UUID` (of the physical GPU) and, on MIG instances, `GPU_I_ID`; the
 *   fields `DCGM_FI_DEV_GPU_UTIL`, `DCGM_FI_DEV_FB_USED`, `DCGM_FI_DEV_FB_FREE` and, for MIG, where `GPU_UTIL` does not
 *   exist, `DCGM_FI_PROF_GR_ENGINE_ACTIVE`, which its default list leaves out on some versions.
 *   https://docs.nvidia.com/datacenter/dcgm/latest/gpu-telemetry/dcgm-exporter.html
 * - CPU: pods labelled `atoll_subscription_id`; kube-state-metrics with
 *   `--metric-labels-allowlist=pods=[atoll_subscription_id]`; cAdvisor (the kubelet has it); and this recording rule,
 *   what a subscription's pods use of their limits. As a rule, because cAdvisor does not know the labels of pods, and
 *   to join all containers of a cluster for each page takes longer than a page may.
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
  readonly #patienceMs: number;
  readonly #coursePatienceMs: number;
  /** By the page: one that is asked for again, or whose answer came too late for its listing, is not queried again. */
  readonly #recent = new RecentAnswers<PageMetrics>();
  #queries = 0;
  #courses = 0;
  #slowUntilMs = 0;
  #isOut = false;

  constructor({
    url,
    deadlineMs = 10_000,
    patienceMs = 250,
    coursePatienceMs = 2_000,
    now = Date.now,
  }: PrometheusMetricsOptions) {
    super();
    this.#client = new PrometheusClient(url, deadlineMs);
    this.#patienceMs = patienceMs;
    this.#coursePatienceMs = coursePatienceMs;
    this.#now = now;
  }

  override async read(
    window: MetricWindow,
    subscriptions: readonly MeasuredSubscription[],
  ): Promise<Map<string, SubscriptionMetrics>> {
    const result = new Map(subscriptions.map(({ subscriptionId }) => [subscriptionId, noData]));
    if (subscriptions.every(({ activeSince }) => activeSince === null)) return result;
    for (const [id, metrics] of (await this.#page(window, subscriptions)) ?? []) result.set(id, metrics);
    return result;
  }

  override async course(
    window: MetricWindow,
    subscription: MeasuredSubscription,
    count: number,
  ): Promise<CoursePoint[]> {
    const nowMs = this.#now();
    const parts = partsOf(window, subscription, count, nowMs);
    const isSlow = performance.now() < this.#slowUntilMs;
    const mayAsk = this.#courses < maxCourses && this.#queries < (isSlow ? 1 : maxQueries);
    const isIdle = mayAsk && parts.some(({ spans }) => spans.length > 0);
    const asked = isIdle ? this.#askCourse(parts, nowMs) : Promise.resolve(null);
    const percentOf = await withPatience(asked, this.#coursePatienceMs, null);
    return courseOf(parts, percentOf ?? (() => null));
  }

  override async peaks(instances: readonly MigInstance[], seconds: number): Promise<Map<string, number>> {
    try {
      const valueOf = await valuesOfAnswer(await this.#client.query(peakQuery(instances, seconds), this.#now()));
      if (!valueOf) throw new PrometheusFault('the answer is not a vector');
      const peaks = instances.map(
        (instance) => [seriesOf(instance), valueOf('gpu_utilization', { place: '', ...instance })] as const,
      );
      return new Map(peaks.flatMap(([key, percent]) => (percent === undefined ? [] : [[key, percent]])));
    } catch (error) {
      this.#note(error instanceof PrometheusFault ? error.message : 'it failed');
      return new Map();
    }
  }

  /** What one query says about all parts; null where it fails. */
  async #askCourse(
    parts: readonly CoursePart[],
    nowMs: number,
  ): Promise<((figure: GpuFigure, span: Span) => number | null) | null> {
    this.#queries += 1;
    this.#courses += 1;
    try {
      const spans = parts.flatMap((part) => part.spans);
      const { expression, placeOf } = pageQuery([], spans, nowMs);
      const valueOf = await valuesOfAnswer(await this.#client.query(expression, nowMs));
      if (!valueOf) throw new PrometheusFault('the answer is not a vector');
      return (figure, span) => {
        const place = placeOf(span);
        return place === undefined ? null : (valueOf(figure, { ...span, place }) ?? null);
      };
    } catch (error) {
      this.#note(error instanceof PrometheusFault ? error.message : 'it failed');
      return null;
    } finally {
      this.#courses -= 1;
      this.#queries -= 1;
    }
  }

  /** The metrics of a page, if they can be had in time. */
  async #page(window: MetricWindow, subscriptions: readonly MeasuredSubscription[]): Promise<PageMetrics | null> {
    const key = createHash('sha256')
      .update(JSON.stringify([window, subscriptions]))
      .digest('base64');
    const isSlow = performance.now() < this.#slowUntilMs;
    let page = this.#recent.get(key);
    if (!page) {
      if (this.#queries >= (isSlow ? 1 : maxQueries)) return null;
      page = this.#recent.add(key, this.#query(window, subscriptions));
    }
    if (page.answer !== undefined) return page.answer;
    if (isSlow) return null;
    const answer = await withPatience(page.coming, this.#patienceMs, 'late' as const);
    if (answer !== 'late') return answer;
    this.#slowUntilMs = performance.now() + slowForMs;
    this.#note(`no answer within ${this.#patienceMs} ms`);
    return null;
  }

  async #query(window: MetricWindow, subscriptions: readonly MeasuredSubscription[]): Promise<PageMetrics | null> {
    this.#queries += 1;
    const beganMs = performance.now();
    try {
      const metrics = await this.#ask(window, subscriptions);
      if (performance.now() - beganMs <= this.#patienceMs) {
        this.#slowUntilMs = 0;
        this.#note(null);
      }
      return metrics;
    } catch (error) {
      this.#note(error instanceof PrometheusFault ? error.message : 'it failed');
      return null;
    } finally {
      this.#queries -= 1;
    }
  }

  async #ask(window: MetricWindow, subscriptions: readonly MeasuredSubscription[]): Promise<PageMetrics> {
    const nowMs = this.#now();
    const measured = subscriptions.flatMap((subscription) => spansOf(subscription, window, nowMs) ?? []);
    if (measured.length === 0) return new Map();
    const spans = measured.flatMap((each) => each.spans);
    const { expression, placeOf } = pageQuery(measured, spans, nowMs);
    const valueOf = await valuesOfAnswer(await this.#client.query(expression, nowMs));
    if (!valueOf) throw new PrometheusFault('the answer is not a vector');
    const means: Means = {
      cpu: (subscriptionId) => valueOf('cpu_usage', subscriptionId) ?? null,
      gpu: (figure, span) => {
        const place = placeOf(span);
        return place === undefined ? null : (valueOf(figure, { ...span, place }) ?? null);
      },
    };
    return new Map(measured.map((each) => [each.subscriptionId, averages(each, means)]));
  }

  /** Logs once that an outage begins, and once that it is over. */
  #note(fault: string | null): void {
    if (fault !== null && !this.#isOut)
      this.#logger.warn(`Cannot read metrics from Prometheus; listings show no_data: ${fault}`);
    if (fault === null && this.#isOut) this.#logger.log('Reading metrics from Prometheus again');
    this.#isOut = fault !== null;
  }
}
