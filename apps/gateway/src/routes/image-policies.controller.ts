import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import {
  AssignPolicyBody,
  CreateImagePolicy,
  ImagePolicy,
  ImagePolicyPage,
  ImagePolicyPath,
  Nothing,
  PageFromOne,
  PageFromOneOrAll,
  TeamImages,
  TeamPath,
  UpdateImagePolicyBody,
  imagePolicies,
  type CallContext,
} from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersAllOrPage, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Image policies')
@Controller('policy/image')
export class ImagePoliciesController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @Answers(201, ImagePolicy, 'Creates an image policy. For a platform_admin, as all of these but the last.')
  create(@Body() body: CreateImagePolicy, @Context() context: CallContext): Promise<ImagePolicy> {
    return this.rpc.call(imagePolicies.create, body, context);
  }

  @Get()
  @AnswersPage(ImagePolicyPage, 1, 'Lists the image policies.')
  list(@Query() page: PageFromOne, @Context() context: CallContext): Promise<ImagePolicyPage> {
    return this.rpc.call(imagePolicies.list, page, context);
  }

  @Get(':id')
  @Answers(200, ImagePolicy, 'Shows an image policy.')
  get(@Param() path: ImagePolicyPath, @Context() context: CallContext): Promise<ImagePolicy> {
    return this.rpc.call(imagePolicies.get, path, context);
  }

  @Put(':id')
  @Answers(200, ImagePolicy, 'Changes an image policy; `objects` replaces all of them.')
  update(@Param() path: ImagePolicyPath, @Body() body: UpdateImagePolicyBody, @Context() context: CallContext): Promise<ImagePolicy> {
    return this.rpc.call(imagePolicies.update, { ...path, ...body }, context);
  }

  @Delete(':id')
  @Answers(204, Nothing, 'Deletes an image policy that no team has.')
  delete(@Param() path: ImagePolicyPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(imagePolicies.delete, path, context);
  }

  @Post(':id/assign-team')
  @Answers(200, ImagePolicy, 'Gives a team this policy in place of the one it has.')
  assign(@Param() path: ImagePolicyPath, @Body() body: AssignPolicyBody, @Context() context: CallContext): Promise<ImagePolicy> {
    return this.rpc.call(imagePolicies.assign, { ...path, ...body }, context);
  }

  @Get('team/:team_id/objects')
  @AnswersAllOrPage(
    TeamImages,
    "Lists the images that a team's policy covers: all of them unless `limit` is sent. For every member of the team.",
  )
  teamImages(@Param() path: TeamPath, @Query() page: PageFromOneOrAll, @Context() context: CallContext): Promise<TeamImages> {
    return this.rpc.call(imagePolicies.teamImages, { ...path, ...page }, context);
  }
}
