import type { MeasuredSlice, MeasuredSubscription } from './metrics-source.js';

/** 2026-03-01T12:00:00Z */
export const nowMs = Date.UTC(2026, 2, 1, 12);
export const nowS = nowMs / 1000;
export const now = () => nowMs;

export const gpuaasId = '1';
/** Where each cluster is simulated. */
export const allSimulated = (gpuaasIds: readonly string[]) => Promise.resolve(new Set(gpuaasIds));

export function ago(seconds: number): Date {
  return new Date(nowMs - seconds * 1000);
}

/** Held for 90 days, and still, unless told. */
const held = { heldFrom: ago(90 * 86_400), heldUntil: null };

export function turn(gpuUuid: string, given: Partial<MeasuredSlice> = {}): MeasuredSlice {
  return { gpuUuid, isMigInstance: false, gpuInstanceId: null, ...held, ...given };
}

export function migSlice(
  gpuUuid: string,
  gpuInstanceId: number | null,
  given: Partial<MeasuredSlice> = {},
): MeasuredSlice {
  return { gpuUuid, isMigInstance: true, gpuInstanceId, ...held, ...given };
}

/** Active for 90 days unless told. */
export function subscription(
  subscriptionId: string,
  slices: MeasuredSlice[],
  activeForS: number | null = 90 * 86_400,
): MeasuredSubscription {
  const activeSince = activeForS === null ? null : ago(activeForS);
  return { subscriptionId, gpuaasId, slices, isWhole: true, activeSince };
}
