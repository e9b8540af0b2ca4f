import type { MetricWindow } from '@atoll/contracts/gpuaas';

/** A slice, or a turn, that a subscription holds or has held: what its GPU figures are read from. */
export interface MeasuredSlice {
  readonly gpuUuid: string;
  /**
   * Whether it has figures of its own. All else shows those of its GPU: DCGM cannot separate who shares by MPS or by
   * turns.
   */
  readonly isMigInstance: boolean;
  /**
   * NVML's id of the MIG instance, DCGM's label `GPU_I_ID`. It is **not** the placement's start, and only the node that
   * created the instance knows it. Null where there is none, or it is unknown: no figure is better than that of another
   * tenant's slice.
   */
  readonly gpuInstanceId: number | null;
  readonly heldFrom: Date;
  /** Null while it is held. */
  readonly heldUntil: Date | null;
}

/** Names a device, or a MIG instance of it: the key in `MetricsSource.peaks`. */
export function seriesOf({ gpuUuid, gpuInstanceId }: Pick<MeasuredSlice, 'gpuUuid' | 'gpuInstanceId'>): string {
  return gpuInstanceId === null ? gpuUuid : `${gpuUuid}/${gpuInstanceId}`;
}

export interface MeasuredSubscription {
  readonly subscriptionId: string;
  readonly gpuaasId: string;
  readonly slices: readonly MeasuredSlice[];
  /** Whether `slices` has all that it held in the window. */
  readonly isWhole: boolean;
  /** Null if it never was active. Earlier samples belong to other tenants. */
  readonly activeSince: Date | null;
}

/** Averages in percent, two decimals; 0 where there is no sample. */
export interface SubscriptionMetrics {
  readonly cpu_usage: number;
  /** Share of the GPU memory. */
  readonly memory_usage: number;
  readonly gpu_utilization: number;
  /** `ok`: each figure has samples of all it is made of; `partial`: of some; `no_data`: nothing was measured. */
  readonly status: 'ok' | 'partial' | 'no_data';
}

/**
 * Averages in percent over a part of a window, two decimals; null where nothing was held or measured. Instants are
 * epoch milliseconds.
 */
export interface CoursePoint {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly gpu_utilization: number | null;
  readonly memory_usage: number | null;
}

/** A MIG instance, the only kind of slice with figures of its own. `gpuInstanceId` as in `MeasuredSlice`. */
export interface MigInstance {
  readonly gpuaasId: string;
  readonly gpuUuid: string;
  readonly gpuInstanceId: number;
  /** Whether its pod is simulated and uses nothing. What is measured does not heed it. */
  readonly isIdle?: boolean;
}

/** Where the figures of subscriptions come from. */
export abstract class MetricsSource {
  /**
   * Returns the averages of each subscription, by `subscriptionId`, over the parts of the window in which it was active
   * and held a slice. Never throws for a source that fails, and answers within about 250 ms: where the source is slow
   * or down every subscription is `no_data`, and the log says so once per outage.
   */
  abstract read(
    window: MetricWindow,
    subscriptions: readonly MeasuredSubscription[],
  ): Promise<Map<string, SubscriptionMetrics>>;

  /**
   * Returns the averages of one subscription over `count` parts of the window, the earliest first, of the times in
   * which it held a slice. Never throws for a source that fails, and answers within about 2 s: where the source is slow
   * or down each figure is null.
   */
  abstract course(window: MetricWindow, subscription: MeasuredSubscription, count: number): Promise<CoursePoint[]>;

  /**
   * Returns the greatest sample of the utilization of MIG instances in the last `seconds`, in percent, by
   * `<GPU's UUID>/<instance id>`. An instance without a sample is not among them. Never throws for a source that fails,
   * and answers within 10 s.
   */
  abstract peaks(instances: readonly MigInstance[], seconds: number): Promise<Map<string, number>>;
}
