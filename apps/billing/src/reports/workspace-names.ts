import type { Snapshot } from '@atoll/database';
import { inChunks, type Pace } from '@atoll/waiting';

/** Names of workspaces by id, of those that are gone too. */
export async function workspaceNames(
  snapshot: Snapshot,
  ids: readonly string[],
  pace: Pace,
): Promise<Map<string, string>> {
  const text = `SELECT id, name FROM workspace WHERE id = ANY ($1::uuid[])`;
  const names = new Map<string, string>();
  for (const chunk of inChunks([...new Set(ids)])) {
    const rows = await snapshot.query<{ id: string; name: string }>(text, [chunk]);
    for (const { id, name } of rows) names.set(id, name);
    if (pace.isFull(rows.length)) await pace.turn();
  }
  return names;
}
