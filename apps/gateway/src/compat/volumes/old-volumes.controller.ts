import { Body, Controller, Delete, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { NumberedId, TeamPath, Text, Uuid, type CallContext } from '@atoll/contracts';
import { podBatches, sharedVolumes, type FoundVolume, type SharedVolume } from '@atoll/contracts/pods';
import { invalidInput } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Context } from '../../requests/call-context.js';
import { OldAnswers, ShownInteger, ShownNumber, ShownText, ShownUuid } from '../http/old-answers.js';

/** In GB. The main API takes any size; old clients choose one of a list, whose ids are the sizes. */
const sizesOnOffer = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000] as const;

const eqstr = 'team_id[eqstr]';

class OldVolumesQuery {
  @Uuid({ optional: true, description: 'Id of the team.' })
  team_id?: string;

  @Uuid({ optional: true, description: 'Id of the team, as older clients write it.' })
  [eqstr]?: string;
}

class BlocksQuery extends TeamPath {
  @NumberedId({ optional: true, description: 'Id of the region: the sizes are the same in all.' })
  region_id?: string;
}

class OldNewVolume extends TeamPath {
  @NumberedId({ description: 'Id of the region.' })
  region_id!: string;

  @Text({ max: 100, description: 'Name of the volume, unique in its team.' })
  name!: string;

  @NumberedId({ description: 'Id of one of the sizes on offer.' })
  storage_block_id!: string;
}

class OldVolumePath {
  @NumberedId({ description: 'Id of the volume.' })
  id!: string;
}

class OldVolume {
  @ShownInteger('Id of the volume.')
  id!: number;

  @ShownText('Name of the volume.')
  name!: string;

  @ShownInteger('Id of the region.')
  region_id!: number;

  @ShownUuid('Id of the team.')
  team_id!: string;

  @ShownInteger('Size in GB.')
  size_in_gb!: number;

  @ShownText('Path at which a pod or VM mounts it; null while none does.', { nullable: true })
  mount_point!: string | null;

  @ShownNumber('Not known here: see the billing calls.', { nullable: true })
  cost!: null;

  @ShownText('AVAILABLE, or IN_USE while a pod or VM mounts it.', { example: 'AVAILABLE' })
  status!: string;
}

class StorageBlock {
  @ShownInteger('Id of the size.')
  id!: number;

  @ShownText('Name of the size.', { example: '100 GB' })
  name!: string;

  @ShownInteger('Size in GB.')
  size!: number;

  @ShownNumber('Not known here: see the billing calls.', { nullable: true })
  cost!: null;
}

@ApiTags('Shared volumes')
@Controller('shared-volumes')
export class OldVolumesController {
  constructor(private readonly rpc: Rpc) {}

  @Get()
  @OldAnswers([OldVolume], 'List the shared volumes of a team', 'All of them. Any member of the team may read them.')
  async listVolumes(@Query() query: OldVolumesQuery, @Context() context: CallContext): Promise<OldVolume[]> {
    const team_id = query.team_id ?? query[eqstr];
    if (team_id === undefined)
      throw invalidInput([{ path: 'team_id', code: 'isUuid', message: 'team_id must be a UUID' }]);
    return (await this.rpc.call(podBatches.volumes, { team_id }, context)).data.map(oldVolume);
  }

  @Get('shared-storage-blocks')
  @OldAnswers(
    [StorageBlock],
    'List the sizes on offer',
    'The sizes that a volume can be created with here; the main API takes any.',
  )
  listBlocks(@Query() _query: BlocksQuery): StorageBlock[] {
    return sizesOnOffer.map((size) => ({ id: size, name: `${size} GB`, size, cost: null }));
  }

  @Post()
  @OldAnswers(OldVolume, 'Create a shared volume', 'Requires team_owner, team_admin or member.')
  async createVolume(@Body() asked: OldNewVolume, @Context() context: CallContext): Promise<OldVolume> {
    const { team_id, region_id, name, storage_block_id } = asked;
    const size_in_gb = sizesOnOffer.find((size) => String(size) === storage_block_id);
    if (size_in_gb === undefined) {
      const message = `storage_block_id must be one of: ${sizesOnOffer.join(', ')}`;
      throw invalidInput([{ path: 'storage_block_id', code: 'isIn', message }]);
    }
    const input = { team_id, region_id, name, size_in_gb };
    return unmounted(await this.rpc.call(sharedVolumes.create, input, context));
  }

  @Delete(':id')
  @OldAnswers(
    OldVolume,
    'Delete a shared volume',
    '409 while a pod or VM mounts it. Requires team_owner, team_admin or member.',
  )
  async deleteVolume(@Param() { id }: OldVolumePath, @Context() context: CallContext): Promise<OldVolume> {
    return unmounted(await this.rpc.call(sharedVolumes.delete, { volume_id: id }, context));
  }
}

/** A volume that is new, or that is being deleted. */
function unmounted(volume: SharedVolume): OldVolume {
  return oldVolume({ ...volume, mount_point: null });
}

function oldVolume({ volume_id, name, region_id, team_id, size_in_gb, mount_point }: FoundVolume): OldVolume {
  return {
    id: Number(volume_id),
    name,
    region_id: Number(region_id),
    team_id,
    size_in_gb,
    mount_point,
    cost: null,
    status: mount_point === null ? 'AVAILABLE' : 'IN_USE',
  };
}
