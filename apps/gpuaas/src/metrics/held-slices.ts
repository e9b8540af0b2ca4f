import type { Query } from '../sharing/lease-store.js';
import { windowMs } from './windows.js';

/** Days for which it is kept what a subscription held: the longest window, and one day more. */
const keptDays = windowMs.last_30d / 86_400_000 + 1;

/** Deletes up to 10,000 rows of `held_slice` that no window reaches any more. */
export async function forgetHeldSlices(query: Query): Promise<void> {
  await query(
    `DELETE FROM held_slice WHERE held_slice_id IN (
       SELECT held_slice_id FROM held_slice WHERE held_until < (SELECT clock_timestamp()) - $1 * interval '1 day'
       ORDER BY held_until LIMIT 10000 FOR UPDATE SKIP LOCKED
     )`,
    [keptDays],
  );
}
