import type { SubscriptionStatus } from '@atoll/contracts/gpuaas';

/** A subscription that could not be granted has failed, whatever is still to be taken back on its nodes. */
export function statusOf(state: string): SubscriptionStatus {
  if (isResizing(state)) return 'active';
  if (state === 'draining') return 'unsubscribing';
  return state === 'undoing' ? 'failed' : (state as SubscriptionStatus);
}

/** Whether a resize is pending. */
export function isResizing(state: string): boolean {
  return state === 'growing' || state === 'reverting';
}
