import type { PodWorkload } from '@atoll/contracts/gpuaas';
import { AppError } from '@atoll/errors';
import { statusOf } from '../model/subscription-status.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';

/** The start of a pod to which no workload came: the pods service is answered so, and is refused nothing. */
export class NotStarted extends AppError {
  constructor(
    readonly status: Extract<PodWorkload['status'], 'waiting' | 'stopped' | 'failed'>,
    reason: string,
  ) {
    super('conflict', reason);
  }
}

/** Why no pod can start on a subscription, regardless of free vGPUs; undefined if it is active. */
export function notActive({ state }: SubscriptionEntity): NotStarted | undefined {
  const status = statusOf(state);
  if (status === 'active') return undefined;
  if (status === 'subscribing') return new NotStarted('waiting', 'Waiting for its subscription to become active.');
  return new NotStarted('failed', `The subscription is ${status}: pods start on an active one.`);
}
