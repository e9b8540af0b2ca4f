import type { SubscriptionStatus } from '@atoll/contracts/gpuaas';

const renamed: Partial<Record<SubscriptionStatus, string>> = { active: 'subscribed', unsubscribing: 'un_subscribing' };

/** The status of a subscription in its old name; as it is where it has none. */
export function oldStatusOf(status: SubscriptionStatus): string {
  return renamed[status] ?? status;
}
