import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, PageFromOne, PageFromOneOrAll, TeamPath, type CallContext } from '@atoll/contracts';
import {
  AssignPolicyBody,
  CreateImagePolicy,
  ImagePolicy,
  ImagePolicyPage,
  ImagePolicyPath,
  TeamImages,
  UpdateImagePolicyBody,
  imagePolicies,
} from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersAllOrPage, AnswersPage } from '../answers/answers.js';
import { ConfigureRoute } from '../http/route-config.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Image policies')
@Controller('policy/image')
export class ImagePoliciesController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @ConfigureRoute({ operatorOnly: true })
  @Answers(
    201,
    ImagePolicy,
    'Create an image policy',
    'Creates a policy that no team has yet. Requires platform_admin.',
  )
  createImagePolicy(@Body() body: CreateImagePolicy, @Context() context: CallContext): Promise<ImagePolicy> {
    return this.rpc.call(imagePolicies.create, body, context);
  }

  @Get()
  @AnswersPage(
    ImagePolicyPage,
    1,
    'List image policies',
    'Returns all image policies, the default one included. Requires platform_admin.',
  )
  listImagePolicies(@Query() page: PageFromOne, @Context() context: CallContext): Promise<ImagePolicyPage> {
    return this.rpc.call(imagePolicies.list, page, context);
  }

  @Get(':id')
  @Answers(200, ImagePolicy, 'Get an image policy', 'Returns a policy with its objects. Requires platform_admin.')
  getImagePolicy(@Param() path: ImagePolicyPath, @Context() context: CallContext): Promise<ImagePolicy> {
    return this.rpc.call(imagePolicies.get, path, context);
  }

  @Put(':id')
  @ConfigureRoute({ operatorOnly: true })
  @Answers(
    200,
    ImagePolicy,
    'Update an image policy',
    '`objects` replaces all objects of the policy. Requires platform_admin.',
  )
  updateImagePolicy(
    @Param() path: ImagePolicyPath,
    @Body() body: UpdateImagePolicyBody,
    @Context() context: CallContext,
  ): Promise<ImagePolicy> {
    return this.rpc.call(imagePolicies.update, { ...path, ...body }, context);
  }

  @Delete(':id')
  @Answers(
    204,
    Nothing,
    'Delete an image policy',
    'No team may have the policy, and the default one cannot be deleted. Requires platform_admin.',
  )
  deleteImagePolicy(@Param() path: ImagePolicyPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(imagePolicies.delete, path, context);
  }

  @Post(':id/assign-team')
  @Answers(
    200,
    ImagePolicy,
    'Assign an image policy to a team',
    'The team has this policy in place of its former one. Requires platform_admin.',
  )
  assignImagePolicy(
    @Param() path: ImagePolicyPath,
    @Body() body: AssignPolicyBody,
    @Context() context: CallContext,
  ): Promise<ImagePolicy> {
    return this.rpc.call(imagePolicies.assign, { ...path, ...body }, context);
  }

  @Get('team/:team_id/objects')
  @AnswersAllOrPage(
    TeamImages,
    'List the images of a team',
    'Returns the images that the policy of the team covers: all of them unless `limit` is sent. Any member of the team may read them.',
  )
  listTeamImages(
    @Param() path: TeamPath,
    @Query() page: PageFromOneOrAll,
    @Context() context: CallContext,
  ): Promise<TeamImages> {
    return this.rpc.call(imagePolicies.teamImages, { ...path, ...page }, context);
  }
}
