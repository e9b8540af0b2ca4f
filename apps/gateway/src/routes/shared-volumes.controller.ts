import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import {
  CreateSharedVolume,
  ListSharedVolumes,
  ResizeSharedVolumeBody,
  SharedVolume,
  SharedVolumePage,
  SharedVolumePath,
  sharedVolumes,
} from '@atoll/contracts/pods';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage, Refuses } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Shared volumes')
@Controller('shared-volumes')
export class SharedVolumesController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @Answers(
    202,
    SharedVolume,
    'Create a shared volume',
    'Creates a volume in a region; it is billed from when it is `active` until it is deleted. A team has at most 1000. Requires team_owner, team_admin or member.',
  )
  @Refuses('not_supported')
  createSharedVolume(@Body() body: CreateSharedVolume, @Context() context: CallContext): Promise<SharedVolume> {
    return this.rpc.call(sharedVolumes.create, body, context);
  }

  @Get()
  @AnswersPage(
    SharedVolumePage,
    1,
    'List the shared volumes of a team',
    'Returns volumes, of one region or of all. Any member of the team may read them.',
  )
  listSharedVolumes(@Query() query: ListSharedVolumes, @Context() context: CallContext): Promise<SharedVolumePage> {
    return this.rpc.call(sharedVolumes.list, query, context);
  }

  @Get(':volume_id')
  @Answers(200, SharedVolume, 'Get a shared volume', 'Returns a volume. Any member of its team may read it.')
  getSharedVolume(@Param() path: SharedVolumePath, @Context() context: CallContext): Promise<SharedVolume> {
    return this.rpc.call(sharedVolumes.get, path, context);
  }

  @Put(':volume_id')
  @Answers(
    200,
    SharedVolume,
    'Resize a shared volume',
    'Makes a volume larger; a smaller size is refused. While it is `resizing`, the old size is shown. Requires team_owner, team_admin or member.',
  )
  resizeSharedVolume(
    @Param() path: SharedVolumePath,
    @Body() body: ResizeSharedVolumeBody,
    @Context() context: CallContext,
  ): Promise<SharedVolume> {
    return this.rpc.call(sharedVolumes.resize, { ...path, ...body }, context);
  }

  @Delete(':volume_id')
  @Answers(
    202,
    SharedVolume,
    'Delete a shared volume',
    'Deletes a volume with its data. Refused while a pod or a VM mounts it; the error names them. Requires team_owner, team_admin or member.',
  )
  deleteSharedVolume(@Param() path: SharedVolumePath, @Context() context: CallContext): Promise<SharedVolume> {
    return this.rpc.call(sharedVolumes.delete, path, context);
  }
}
