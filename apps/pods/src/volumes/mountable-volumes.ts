import { notFound } from '@atoll/contracts';
import { type PodMount } from '@atoll/contracts/pods';
import { Statements } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { VolumeEntity } from '../model/volume.entity.js';

/** What mounts volumes. */
export interface Mounter {
  readonly teamId: string;
  readonly gpuaasId: string;
}

interface Found {
  readonly volume_id: string;
  readonly name: string;
  readonly gpuaas_id: string;
  readonly state: string;
}

const volumesOf = `SELECT volume_id, name, gpuaas_id, state FROM shared_volume
  WHERE volume_id = ANY ($1) AND team_id = $2 AND state <> 'deleted' ORDER BY volume_id`;
const mountable: ReadonlySet<string> = new Set(['pending', 'active', 'growing']);
const shownNames = 5;

/** Throws `invalid_input` where two mounts have one path. */
export function requireMountsApart(mounts: readonly PodMount[] = []): void {
  const paths = mounts.map(({ path }) => path);
  if (new Set(paths).size < paths.length)
    throw invalidField('volumes', 'isUniquePath', 'must not mount two volumes at the same path');
}

/** Which volumes may be mounted, and which are. */
@Injectable()
export class MountableVolumes {
  constructor(private readonly statements: Statements) {}

  /**
   * Within the transaction that writes the mounts: until it ends, none of these volumes is deleted. Throws `not_found`
   * for a volume that the team does not have, `not_supported` for one of another GPU service, `conflict` for one that
   * is being deleted or has failed.
   */
  async hold(manager: EntityManager, mounter: Mounter, mounts: readonly PodMount[]): Promise<void> {
    const ids = idsOf(mounts);
    if (ids.length === 0) return;
    requireMountable(mounter, ids, await manager.query<Found[]>(`${volumesOf} FOR SHARE`, [ids, mounter.teamId]));
  }

  /** Throws as `hold`, outside of any transaction: before a run that mounts the volumes is requested. */
  async require(mounter: Mounter, mounts: readonly PodMount[]): Promise<void> {
    const ids = idsOf(mounts);
    if (ids.length === 0) return;
    requireMountable(mounter, ids, await this.statements.query<Found>(volumesOf, [ids, mounter.teamId]));
  }

  /** Throws `conflict`, naming who mounts the volume or will at its next start. The volume is locked. */
  async requireUnmounted(manager: EntityManager, { volumeId, teamId }: VolumeEntity): Promise<void> {
    const rows = await manager.query<{ name: string; all: number }[]>(
      `SELECT name, (count(*) OVER ())::int AS all FROM (
         SELECT 'pod ' || pod_name AS name FROM pod
         WHERE team_id = $1 AND state NOT IN ('deleting', 'deleted') AND (volumes @> $2 OR (mounted @> $2 AND state NOT IN ('stopped', 'failed')))
         UNION ALL SELECT 'VM ' || name FROM vm WHERE team_id = $1 AND state NOT IN ('deleting', 'deleted') AND volumes @> $2
       ) mounter ORDER BY name LIMIT ${shownNames}`,
      [teamId, JSON.stringify([{ volume_id: volumeId }])],
    );
    if (rows.length === 0) return;
    const more = (rows[0]?.all ?? 0) - rows.length;
    const names = `${rows.map(({ name }) => name).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
    throw new AppError('conflict', `The volume is mounted by ${names}: unmount it there first.`);
  }
}

const idsOf = (mounts: readonly PodMount[]): string[] => [...new Set(mounts.map(({ volume_id }) => volume_id))];

function requireMountable({ gpuaasId }: Mounter, ids: readonly string[], found: readonly Found[]): void {
  if (found.length < ids.length) throw notFound('shared volume');
  for (const { volume_id, name, gpuaas_id, state } of found) {
    const shown = `The volume ${volume_id} (${name})`;
    if (gpuaas_id !== gpuaasId) {
      throw new AppError(
        'not_supported',
        `${shown} is in GPU service ${gpuaas_id}: nothing in GPU service ${gpuaasId} can mount it.`,
      );
    }
    if (!mountable.has(state))
      throw new AppError('conflict', `${shown} is ${state === 'deleting' ? 'being deleted' : 'failed'}.`);
  }
}
