import type { MeasuredSlice, MeasuredSubscription } from './metrics-source.js';

/** 2026-03-01T12:00:00Z */
export const nowMs = Date.UTC(2026, 2, 1, 12);
export const nowS = nowMs / 1000;
export const now = () => nowMs;

export function turn(gpuUuid: string): MeasuredSlice {
  return { gpuUuid, mechanism: 'time_slicing', mode: 'Temporal', gpuInstanceId: null };
}

export function migSlice(gpuUuid: string, gpuInstanceId: number | null): MeasuredSlice {
  return { gpuUuid, mechanism: 'mig', mode: 'Spatial', gpuInstanceId };
}

/** Active for 90 days unless told. */
export function subscription(
  subscriptionId: string,
  slices: MeasuredSlice[],
  activeForS: number | null = 90 * 86_400,
): MeasuredSubscription {
  return { subscriptionId, slices, activeSince: activeForS === null ? null : new Date(nowMs - activeForS * 1000) };
}
