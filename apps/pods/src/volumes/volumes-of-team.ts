import type { CallContext } from '@atoll/contracts';
import { type FindVolumes, type FoundVolumes } from '@atoll/contracts/pods';
import { Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { VolumeSteps } from './volume-steps.js';
import { volumeView } from './volume-view.js';

/**
 * Volumes of the team `$1`, and of the ids `$2` where those are not null. Of several mounts of a volume that of the
 * latest pod or VM is shown: their ids ascend with time, and all have 36 characters.
 */
const volumesQuery = `WITH latest AS (
    SELECT volume_id, substr(max((id::text || path) COLLATE "C"), 37) AS path FROM (
      SELECT pod_id AS id, volumes FROM pod WHERE team_id = $1 AND state <> 'deleted'
      UNION ALL SELECT instance_id, volumes FROM vm WHERE team_id = $1 AND state <> 'deleted'
    ) mounter CROSS JOIN jsonb_to_recordset(volumes) AS mount (volume_id bigint, path text)
    WHERE $2::bigint[] IS NULL OR volume_id = ANY ($2) GROUP BY volume_id
  ), mounted AS MATERIALIZED (SELECT jsonb_object_agg(volume_id, path) AS paths FROM latest)
  SELECT shared_volume.*, paths->>volume_id::text AS mount_point FROM shared_volume CROSS JOIN mounted
  WHERE team_id = $1 AND state <> 'deleted' AND ($2::bigint[] IS NULL OR volume_id = ANY ($2))
  ORDER BY created_at, volume_id`;

/** The shared volumes of a team with their mount points, in one statement. */
@Injectable()
export class VolumesOfTeam {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly steps: VolumeSteps,
  ) {}

  async find({ team_id, volume_ids }: FindVolumes, { caller }: CallContext): Promise<FoundVolumes> {
    await this.teams.teamFor(caller, team_id, 'readTeam');
    const values = [team_id, volume_ids ?? null];
    const rows = await this.statements.query<{ mount_point: string | null }>(volumesQuery, values);
    return { data: rows.map((raw) => ({ ...volumeView(this.steps.rowOf(raw)), mount_point: raw.mount_point })) };
  }
}
