import type { MetricWindow } from '@atoll/contracts/gpuaas';
import type { Statements } from '@atoll/database';
import { windowMs } from './windows.js';

/** A time in which a subscription held a slice, or turns, of a GPU. */
export interface HeldSlice {
  readonly subscriptionId: string;
  readonly gpuUuid: string;
  /** As in `HeldSliceEntity`. */
  readonly isSlot: boolean;
  readonly gpuInstanceId: number | null;
  readonly heldFrom: Date;
  /** Null while it is held. */
  readonly heldUntil: Date | null;
  /** False where its subscription held more than is returned. */
  readonly isWhole: boolean;
}

/** Times that are returned of one subscription, at most: more than workloads of an hour in a month. */
const maxTimes = 1_000;
/** Days for which it is kept what a subscription held: the longest window, and one day more. */
const keptDays = windowMs.last_30d / 86_400_000 + 1;

/**
 * Returns what the subscriptions held within the window that ends now, of each up to 1,000 times: what it holds now,
 * the longest first, then what it gave back last. All that it holds now on one GPU, or one MIG instance, is one time,
 * from when the first of it was held, since it has the same figures.
 */
export async function heldSlices(
  statements: Statements,
  subscriptionIds: readonly string[],
  window: MetricWindow,
): Promise<HeldSlice[]> {
  if (subscriptionIds.length === 0) return [];
  return statements.query<HeldSlice>(
    `SELECT asked.subscription_id AS "subscriptionId", uuid AS "gpuUuid", is_slot AS "isSlot", gpu_instance_id AS "gpuInstanceId",
       held_from AS "heldFrom", held_until AS "heldUntil", times <= ${maxTimes} AS "isWhole"
     FROM unnest($1::bigint[]) asked (subscription_id)
     CROSS JOIN LATERAL (
       SELECT *, count(*) OVER () AS times FROM (
         (SELECT gpu_id, is_slot, gpu_instance_id, min(held_from) AS held_from, NULL::timestamptz AS held_until
          FROM held_slice WHERE held_slice.subscription_id = asked.subscription_id AND held_until IS NULL
          GROUP BY gpu_id, is_slot, gpu_instance_id ORDER BY min(held_from), gpu_id, gpu_instance_id LIMIT ${maxTimes} + 1)
         UNION ALL
         (SELECT gpu_id, is_slot, gpu_instance_id, held_from, held_until
          FROM held_slice WHERE held_slice.subscription_id = asked.subscription_id
            AND held_until > (SELECT clock_timestamp()) - $2 * interval '1 millisecond'
          ORDER BY held_until DESC LIMIT ${maxTimes} + 1)
       ) either ORDER BY held_until DESC NULLS FIRST, held_from, gpu_id, gpu_instance_id LIMIT ${maxTimes}
     ) held JOIN gpu USING (gpu_id)`,
    [subscriptionIds, windowMs[window]],
  );
}

/** Deletes up to 10,000 rows of `held_slice` that no window reaches any more. */
export async function forgetHeldSlices(statements: Statements): Promise<void> {
  await statements.query(
    `DELETE FROM held_slice WHERE held_slice_id IN (
       SELECT held_slice_id FROM held_slice WHERE held_until < (SELECT clock_timestamp()) - $1 * interval '1 day'
       ORDER BY held_until LIMIT 10000 FOR UPDATE SKIP LOCKED
     )`,
    [keptDays],
  );
}
