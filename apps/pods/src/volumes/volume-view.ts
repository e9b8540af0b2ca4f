import type { SharedVolume, VolumeStatus } from '@atoll/contracts/pods';
import { shownError } from '../model/failing-row.js';
import type { VolumeEntity } from '../model/volume.entity.js';
import { gigabytesOf } from '../model/volume-size.js';

function statusOf(state: string): VolumeStatus {
  if (state === 'growing') return 'resizing';
  return state === 'failing' ? 'failed' : (state as VolumeStatus);
}

export function volumeView(volume: VolumeEntity): SharedVolume {
  return {
    volume_id: volume.volumeId,
    name: volume.name,
    team_id: volume.teamId,
    workspace_id: volume.workspaceId,
    region_id: volume.regionId,
    gpuaas_id: volume.gpuaasId,
    size_in_gb: volume.sizeGb,
    used_size_in_gb: gigabytesOf(volume.usedBytes),
    status: statusOf(volume.state),
    reason: shownError(volume)?.message ?? null,
    created_at: volume.createdAt.toISOString(),
  };
}
