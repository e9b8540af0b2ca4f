import { notFound, requirePermission, type Caller, type Permission } from '@atoll/contracts';
import type { MachineRow } from '@atoll/state-machine';

/** The row of something that was not deleted. Throws `not_found` for any other; `what` is its word in that. */
export function requireLive<Row extends MachineRow>(row: Row | undefined, what: string): Row {
  if (!row || row.state === 'deleted') throw notFound(what);
  return row;
}

/** As `requireLive`, for a caller who has the permission in its team: for members of other teams it does not exist. */
export function requireForCaller<Row extends MachineRow & { readonly teamId: string }>(
  row: Row | undefined,
  what: string,
  caller: Caller,
  permission: Permission,
): Row {
  const live = requireLive(row, what);
  requirePermission(caller, live.teamId, permission, what);
  return live;
}
