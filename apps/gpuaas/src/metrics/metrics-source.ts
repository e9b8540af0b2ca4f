import type { MetricWindow } from '@atoll/contracts';
import type { Mechanism, SharingMode } from '@atoll/gpu';

/** A slice, or a turn, that a subscription holds: what its GPU figures are read from. */
export interface MeasuredSlice {
  readonly gpuUuid: string;
  /** Of its pool. */
  readonly mechanism: Mechanism;
  /** Of its GPU now: a MIG slice whose GPU fell back to time slicing is measured as the whole device. */
  readonly mode: SharingMode;
  /**
   * NVML's id of the MIG instance, DCGM's label `GPU_I_ID`. It is **not** the placement's start, and only who made the instance knows it.
   * Null where there is none, or it is unknown: better no figure than that of another tenant's slice.
   */
  readonly gpuInstanceId: number | null;
}

export interface MeasuredSubscription {
  readonly subscriptionId: string;
  /** Those it holds now. */
  readonly slices: readonly MeasuredSlice[];
  /** Null if it never was active. What was measured before belongs to somebody else. */
  readonly activeSince: Date | null;
}

/** Averages in percent, two decimals; 0 where there is no sample. */
export interface SubscriptionMetrics {
  readonly cpu_usage: number;
  /** Of the GPU memory. */
  readonly memory_usage: number;
  readonly gpu_utilization: number;
  /** `ok`: each figure has samples of all it is made of; `partial`: of some; `no_data`: nothing was measured. */
  readonly status: 'ok' | 'partial' | 'no_data';
}

/** Where the figures of subscriptions come from. */
export abstract class MetricsSource {
  /**
   * The averages of each subscription over the window, or over its life where that is shorter, by `subscriptionId`. One query for a page.
   * Never throws, and answers within about two seconds: where the source is down every subscription is `no_data`, and the log says so once
   * per outage.
   */
  abstract read(window: MetricWindow, subscriptions: readonly MeasuredSubscription[]): Promise<Map<string, SubscriptionMetrics>>;
}
