import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Instant, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { PageOf } from '../page.js';
import { ListInRegion } from './list-in-region.js';
import { Amount } from './pod-fields.js';

const largestGb = 100_000;
const sizeField = { min: 1, max: largestGb, example: 100, description: 'Size in GB, 10^9 bytes.' };
const nameField = { max: 100, example: 'datasets', description: 'Name of the volume, unique in its team.' };

export class CreateSharedVolume {
  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' })
  team_id!: string;

  @Uuid({ optional: true, description: 'The team’s default workspace if left out.' })
  workspace_id?: string;

  @NumberedId({ example: '1', description: 'The region in which the volume is created.' })
  region_id!: string;

  @NumberedId({
    optional: true,
    example: '1',
    description:
      'The GPU service of the region whose pods and VMs can mount the volume; the oldest one of the region if left out.',
  })
  gpuaas_id?: string;

  @Text(nameField)
  name!: string;

  @WholeNumber(sizeField)
  size_in_gb!: number;
}

const volumeStatuses = ['pending', 'active', 'resizing', 'deleting', 'deleted', 'failed'] as const;
export type VolumeStatus = (typeof volumeStatuses)[number];

export class SharedVolume {
  @NumberedId({ example: '5' })
  volume_id!: string;

  @Text(nameField)
  name!: string;

  @Uuid()
  team_id!: string;

  @Uuid()
  workspace_id!: string;

  @NumberedId({ example: '1' })
  region_id!: string;

  @NumberedId({ example: '1', description: 'The GPU service whose pods and VMs can mount the volume.' })
  gpuaas_id!: string;

  @WholeNumber({ ...sizeField, description: 'Size in GB, 10^9 bytes; while `resizing` the size before.' })
  size_in_gb!: number;

  @Amount({
    min: 0,
    max: 1_000_000_000,
    nullable: true,
    example: 12.34,
    description: 'Used space in GB, 10^9 bytes; null while the cluster has no figure.',
  })
  used_size_in_gb!: number | null;

  @OneOf('VolumeStatus', volumeStatuses, {
    example: 'active',
    description: 'A volume is `deleted` only in a listing with `include_ended`.',
  })
  status!: VolumeStatus;

  @Text({ max: 500, nullable: true, description: 'Reason why it failed, was not resized or waits.' })
  reason!: string | null;

  @Instant()
  created_at!: string;
}

export class SharedVolumePage extends PageOf(() => SharedVolume) {}

export class ListSharedVolumes extends ListInRegion {}

export class SharedVolumePath {
  @NumberedId({ example: '5' })
  volume_id!: string;
}

export class ResizeSharedVolumeBody {
  @WholeNumber({ ...sizeField, description: 'New size in GB, 10^9 bytes; not smaller than the current one.' })
  size_in_gb!: number;
}

export class ResizeSharedVolume extends IntersectionType(SharedVolumePath, ResizeSharedVolumeBody) {}

export const sharedVolumes = contract('pods.volumes', {
  create: operation(CreateSharedVolume, SharedVolume),
  list: operation(ListSharedVolumes, SharedVolumePage),
  get: operation(SharedVolumePath, SharedVolume),
  resize: operation(ResizeSharedVolume, SharedVolume),
  delete: operation(SharedVolumePath, SharedVolume),
});
