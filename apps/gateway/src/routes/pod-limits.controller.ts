import { Body, Controller, Get, Param, Put } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, TeamPath, type CallContext } from '@atoll/contracts';
import { PodLimits, podLimits, SetPodLimits, TeamPodLimits } from '@atoll/contracts/pods';
import { Rpc } from '@atoll/rpc';
import { Answers } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Pods')
@Controller()
export class PodLimitsController {
  constructor(private readonly rpc: Rpc) {}

  @Get('pod-limits')
  @Answers(
    200,
    PodLimits,
    'Get the pod limits of all teams',
    'Returns how long pods may run and idle. Requires platform_admin.',
  )
  getPodLimits(@Context() context: CallContext): Promise<PodLimits> {
    return this.rpc.call(podLimits.get, new Nothing(), context);
  }

  @Put('pod-limits')
  @Answers(
    200,
    PodLimits,
    'Set the pod limits of all teams',
    'Replaces all limits. They apply to pods that are created or started later. Requires platform_admin.',
  )
  setPodLimits(@Body() body: SetPodLimits, @Context() context: CallContext): Promise<PodLimits> {
    return this.rpc.call(podLimits.set, body, context);
  }

  @Get('team/:team_id/pod-limits')
  @Answers(
    200,
    TeamPodLimits,
    'Get the pod limits of a team',
    'Returns the limits that the team has set, and the effective limits, which include those of the operator. Requires team_owner or team_admin.',
  )
  getTeamPodLimits(@Param() path: TeamPath, @Context() context: CallContext): Promise<TeamPodLimits> {
    return this.rpc.call(podLimits.ofTeam, path, context);
  }

  @Put('team/:team_id/pod-limits')
  @Answers(
    200,
    TeamPodLimits,
    'Set the pod limits of a team',
    'Replaces all limits of the team; none may exceed that of the operator. They apply to pods that are created or started later. Requires team_owner or team_admin.',
  )
  setTeamPodLimits(
    @Param() path: TeamPath,
    @Body() body: SetPodLimits,
    @Context() context: CallContext,
  ): Promise<TeamPodLimits> {
    return this.rpc.call(podLimits.setOfTeam, { ...path, ...body }, context);
  }
}
