import { notFound, type PodMount } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';

/** Whether a pod of a team may mount volumes. There are no volumes yet. */
@Injectable()
export class MountableVolumes {
  /** Throws `not_found` for a volume that the team does not have. */
  require(_teamId: string, mounts: readonly PodMount[]): Promise<void> {
    return mounts.length > 0 ? Promise.reject(notFound('volume')) : Promise.resolve();
  }
}
