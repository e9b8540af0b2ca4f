import { tooFewVgpus, type PodSubscription } from '@atoll/contracts/gpuaas';
import { takeTurn } from '@atoll/database';
import type { EntityManager } from 'typeorm';
import { holdingPod } from '../model/pod.machine.js';

/** Of those who ask for vGPUs of a subscription: the lane of `Writers`. */
export const turnAtRoom = (subscriptionId: string): string => `vGPUs of subscription ${subscriptionId}`;

/**
 * Within a transaction: throws `insufficient_capacity` where the subscription has not as many vGPUs beside the pods that were accepted before,
 * of which gpuaas counts only those that have asked for their workload.
 */
export async function requireRoom(manager: EntityManager, subscription: PodSubscription, vgpus: number): Promise<void> {
  const { subscription_id, vgpus: held, vgpus_beside_pods } = subscription;
  await takeTurn(manager, turnAtRoom(subscription_id));
  const [{ ofPods = 0 } = {}] = await manager.query<{ ofPods: number }[]>(
    `SELECT coalesce(sum(vgpus), 0)::int AS "ofPods" FROM pod WHERE subscription_id = $1 AND ${holdingPod}`,
    [subscription_id],
  );
  const used = ofPods + vgpus_beside_pods;
  if (used + vgpus > held) throw tooFewVgpus(held, used);
}
