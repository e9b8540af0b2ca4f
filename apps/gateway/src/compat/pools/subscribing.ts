import { notFound, type CallContext } from '@atoll/contracts';
import { gpuaasBatches, subscriptions, type EndSubscription } from '@atoll/contracts/gpuaas';
import { pods } from '@atoll/contracts/pods';
import { invalidInput, isStillRunning } from '@atoll/errors';
import type { Rpc } from '@atoll/rpc';
import type { OldSubscribe } from './old-subscriptions.js';
import { imagesOfTeam, podsOf } from './pods-of-team.js';

/** Pods are started one by one: as many as the deadline allows for. */
const mostPods = 64;
const atOnce = 4;
/** How long each of the two steps of undoing may take, even if creating the pods has used up the call's time. */
const undoMs = 5_000;

/**
 * Subscribes, and with an image starts a pod for each vGPU. All or nothing: if a pod is refused, the rest is undone,
 * and the next call with the same `Idempotency-Key` starts over.
 */
export async function subscribe(rpc: Rpc, asked: OldSubscribe, context: CallContext): Promise<string> {
  const { team_id, pool_id, vgpus, workspace_id, image_uuid } = asked;
  const image = image_uuid == null ? undefined : await imageOf(rpc, asked, context);
  const place = { team_id, ...(workspace_id != null && { workspace_id }) };
  const { subscription_id } = await rpc.call(
    subscriptions.subscribe,
    { ...place, pool_id, vgpus, unique: true },
    context,
  );
  if (image === undefined) return subscription_id;
  try {
    for (let first = 1; first <= vgpus; first += atOnce) {
      const numbers = Array.from({ length: Math.min(atOnce, vgpus - first + 1) }, (_, at) => first + at);
      const answers = await Promise.allSettled(
        numbers.map((number) => {
          const pod = { ...place, subscription_id, name: `gpu-${subscription_id}-${number}`, image };
          return rpc.call(pods.create, pod, contextOf(context, `${subscription_id} ${number}`));
        }),
      );
      for (const answer of answers) if (answer.status === 'rejected') throw answer.reason;
    }
  } catch (error) {
    // Another call with the same key is at it, and answers for it.
    if (isStillRunning(error)) throw error;
    await undo(rpc, { subscription_id, team_id }, context);
    throw error;
  }
  return subscription_id;
}

async function imageOf(rpc: Rpc, { team_id, image_uuid, vgpus }: OldSubscribe, context: CallContext): Promise<string> {
  if (vgpus > mostPods) {
    const message = `vgpus must be at most ${mostPods} with an image, since a pod is started for each`;
    throw invalidInput([{ path: 'vgpus', code: 'mostPods', message }]);
  }
  const image = (await imagesOfTeam(rpc, team_id, context)).find(({ id }) => id === image_uuid);
  if (!image) throw notFound('image');
  return image.reference;
}

/**
 * Ends a subscription with what runs on it, and its pods, which would be left stopped. A pod that cannot be deleted is
 * left so.
 */
export async function unsubscribe(rpc: Rpc, asked: EndSubscription, context: CallContext): Promise<void> {
  await deletePods(rpc, await rpc.call(gpuaasBatches.end, asked, context), context);
}

interface Ended {
  subscription_id: string;
  team_id: string;
}

/**
 * Errors that meet the undoing are left: the first one is what the caller hears. A pod that is created after its list
 * was read gets no GPU, since the subscription has ended: it fails.
 */
async function undo(rpc: Rpc, { subscription_id, team_id }: Ended, context: CallContext): Promise<void> {
  await Promise.allSettled([rpc.call(gpuaasBatches.undo, { subscription_id }, withTimeToUndo(context))]);
  await Promise.allSettled([deletePods(rpc, { subscription_id, team_id }, withTimeToUndo(context))]);
}

function withTimeToUndo(context: CallContext): CallContext {
  return { ...context, deadlineAtMs: Math.max(context.deadlineAtMs, Date.now() + undoMs) };
}

/** Those too whose creation was not answered. */
async function deletePods(rpc: Rpc, { subscription_id, team_id }: Ended, context: CallContext): Promise<void> {
  const left = await podsOf(rpc, team_id, [subscription_id], context);
  for (let first = 0; first < left.length; first += atOnce) {
    const some = left.slice(first, first + atOnce);
    await Promise.allSettled(
      some.map(({ pod_name }) => rpc.call(pods.delete, { pod_name }, contextOf(context, pod_name))),
    );
  }
}

/** One idempotency key is one call: each part has a key of its own. */
function contextOf({ idempotency, ...context }: CallContext, part: string): CallContext {
  return { ...context, ...(idempotency && { idempotency: { ...idempotency, key: `${idempotency.key} ${part}` } }) };
}
