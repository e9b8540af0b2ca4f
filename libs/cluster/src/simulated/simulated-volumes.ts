import { ClusterError } from '../cluster-error.js';
import type { Volume, VolumeRef } from '../objects.js';
import type { FoundObject, VolumeSight } from '../observations.js';
import { tables, type SimulatedStore } from './simulated-store.js';

/** Bytes that each run writes to each volume that it mounts, when it starts. */
const writtenBytes = 25_000_000;

/** The volumes of one simulated cluster, as rows. What runs have written to one is a number. */
export class SimulatedVolumes {
  constructor(
    private readonly store: SimulatedStore,
    private readonly cluster: string,
  ) {}

  async make({ ref, sizeGb }: Volume): Promise<void> {
    await this.store.query(
      `INSERT INTO ${tables.volume} (cluster, id, team_id, size_gb) VALUES ($1, $2, $3, $4)
       ON CONFLICT (cluster, id) DO UPDATE SET team_id = excluded.team_id, size_gb = GREATEST(${tables.volume}.size_gb, excluded.size_gb)`,
      [this.cluster, ref.id, ref.teamId, sizeGb],
    );
  }

  async observe(refs: readonly { readonly id: string }[]): Promise<VolumeSight[]> {
    const rows = await this.store.query<{ id: string; size_gb: number; used_bytes: string }>(
      `SELECT id, size_gb, used_bytes FROM ${tables.volume} WHERE cluster = $1 AND id = ANY ($2)`,
      [this.cluster, refs.map(({ id }) => id)],
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    return refs.map(({ id }) => {
      const row = byId.get(id);
      return row ? { phase: 'ready', sizeGb: row.size_gb, usedBytes: Number(row.used_bytes) } : { phase: 'absent' };
    });
  }

  /** A new run writes to the volumes that it mounts. Throws `not_found` unless all of them exist. */
  async write(ids: readonly string[]): Promise<void> {
    const wanted = [...new Set(ids)];
    if (wanted.length === 0) return;
    const written = await this.store.query(
      `UPDATE ${tables.volume} SET used_bytes = GREATEST(used_bytes, LEAST(used_bytes + $3, size_gb * 1000000000::bigint))
       WHERE cluster = $1 AND id = ANY ($2)
         AND (SELECT count(*) FROM ${tables.volume} WHERE cluster = $1 AND id = ANY ($2)) = cardinality($2::text[]) RETURNING id`,
      [this.cluster, wanted, writtenBytes],
    );
    if (written.length < wanted.length)
      throw new ClusterError('not_found', 'A volume that the pod mounts does not exist.');
  }

  async remove({ id }: VolumeRef): Promise<void> {
    await this.store.query(
      `DELETE FROM ${tables.volume} WHERE cluster = $1 AND id = $2 AND NOT EXISTS (
         SELECT FROM ${tables.run} WHERE cluster = $1 AND spec->'volumes' ? $2 AND (ends_at IS NULL OR ends_at > clock_timestamp()))`,
      [this.cluster, id],
    );
    const [sight] = await this.observe([{ id }]);
    if (sight?.phase !== 'absent') throw new ClusterError('in_use', 'A pod still mounts the volume.');
  }

  async *list(): AsyncGenerator<FoundObject> {
    const rows = await this.store.query<{ id: string; team_id: string; requested_at: Date }>(
      `SELECT id, team_id, requested_at FROM ${tables.volume} WHERE cluster = $1 ORDER BY id`,
      [this.cluster],
    );
    for (const { id, team_id, requested_at } of rows)
      yield { ref: { kind: 'volume', id, run: 0, teamId: team_id }, createdAt: requested_at };
  }
}
