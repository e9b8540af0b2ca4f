import type { MetricWindow } from '@atoll/contracts/gpuaas';
import type { MeasuredSlice, MeasuredSubscription } from './metrics-source.js';
import { windowMs } from './windows.js';

/** A time in which a subscription alone, or with those who share the GPU with it, used a GPU or a MIG instance. */
export interface Span {
  readonly gpuUuid: string;
  /** Null: the whole GPU. */
  readonly gpuInstanceId: number | null;
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface MeasuredSpans {
  readonly subscriptionId: string;
  /** When it became active, or the window begins. A restored database may give the id of another subscription again. */
  readonly fromMs: number;
  /** One GPU, or MIG instance, is never in two spans at the same time. */
  readonly spans: readonly Span[];
  /** Whether all that was held is known and can be measured: a MIG instance whose id is unknown cannot. */
  readonly isWhole: boolean;
}

/** What is to be measured of a subscription within the window that ends now; undefined if it never was active in it. */
export function spansOf(
  subscription: MeasuredSubscription,
  window: MetricWindow,
  nowMs: number,
): MeasuredSpans | undefined {
  const { subscriptionId, slices, activeSince } = subscription;
  if (activeSince === null || activeSince.getTime() > nowMs) return undefined;
  const beginMs = Math.max(nowMs - windowMs[window], activeSince.getTime());
  const held = slices
    .map((slice) => ({
      slice,
      fromMs: Math.max(beginMs, slice.heldFrom.getTime()),
      untilMs: Math.min(nowMs, slice.heldUntil?.getTime() ?? nowMs),
    }))
    .filter(({ fromMs, untilMs }) => fromMs < untilMs);
  const known = held.filter(({ slice }) => !slice.isMigInstance || slice.gpuInstanceId !== null);
  const bySeries = Map.groupBy(known, ({ slice }) => sliceKey(slice));
  return {
    subscriptionId,
    fromMs: beginMs,
    spans: [...bySeries.values()].flatMap(union),
    isWhole: subscription.isWhole && known.length === held.length,
  };
}

function sliceKey({ gpuUuid, isMigInstance, gpuInstanceId }: MeasuredSlice): string {
  return isMigInstance ? `${gpuUuid}/${gpuInstanceId}` : gpuUuid;
}

/** The times of one series without overlaps: two turns of one GPU at a time count once. */
function union(held: readonly { slice: MeasuredSlice; fromMs: number; untilMs: number }[]): Span[] {
  const spans: { gpuUuid: string; gpuInstanceId: number | null; fromMs: number; untilMs: number }[] = [];
  for (const { slice, fromMs, untilMs } of held.toSorted((one, other) => one.fromMs - other.fromMs)) {
    const last = spans.at(-1);
    if (last && fromMs <= last.untilMs) last.untilMs = Math.max(last.untilMs, untilMs);
    else
      spans.push({
        gpuUuid: slice.gpuUuid,
        gpuInstanceId: slice.isMigInstance ? slice.gpuInstanceId : null,
        fromMs,
        untilMs,
      });
  }
  return spans;
}
