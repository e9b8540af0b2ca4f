import { tooFewVgpus, type PodSubscription } from '@atoll/contracts/gpuaas';
import { takeTurn } from '@atoll/database';
import { AppError } from '@atoll/errors';
import type { EntityManager } from 'typeorm';
import { atRestPod, holdingPod } from '../model/pod.machine.js';

/** Of those who ask for vGPUs of a subscription: the lane of `Writers`. */
export const turnAtRoom = (subscriptionId: string): string => `vGPUs of subscription ${subscriptionId}`;

/**
 * Within a transaction: throws what gpuaas refuses, and `insufficient_capacity` where the subscription has not as many
 * vGPUs beside the pods that were accepted before, of which gpuaas counts only those that have asked for their
 * workload. A call with an idempotency key checks `refusal` only here: its own first run may have filled the
 * subscription.
 */
export async function requireRoom(manager: EntityManager, subscription: PodSubscription, vgpus: number): Promise<void> {
  const { refusal, subscription_id, vgpus: held, vgpus_beside_pods } = subscription;
  if (refusal) throw new AppError(refusal.code, refusal.message);
  await takeTurn(manager, turnAtRoom(subscription_id));
  const [{ ofPods = 0 } = {}] = await manager.query<{ ofPods: number }[]>(
    `SELECT coalesce(sum(vgpus), 0)::int AS "ofPods" FROM pod WHERE subscription_id = $1 AND ${holdingPod}`,
    [subscription_id],
  );
  const used = ofPods + vgpus_beside_pods;
  if (used + vgpus > held) throw tooFewVgpus(held, used);
}

/** They hold nothing and cost nothing, and each is a row of every listing. */
const mostAtRest = 1_000;

/**
 * Within a transaction: throws `conflict` where the team has as many pods that are stopped or failed as a team may
 * keep.
 */
export async function requireFewAtRest(manager: EntityManager, teamId: string): Promise<void> {
  const [{ atRest = 0 } = {}] = await manager.query<{ atRest: number }[]>(
    `SELECT count(*)::int AS "atRest" FROM pod WHERE team_id = $1 AND state <> 'deleted' AND ${atRestPod}`,
    [teamId],
  );
  if (atRest < mostAtRest) return;
  throw new AppError(
    'conflict',
    `The team has ${atRest} stopped or failed pods, the maximum for a team. Delete some first.`,
  );
}
