import { Controller, Get, Query, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { isPlatformAdmin, type CallContext } from '@atoll/contracts';
import { InstanceList, instances, ListInstances } from '@atoll/contracts/pods';
import type { FastifyReply } from 'fastify';
import { AnswersAllOrPage } from '../answers/answers.js';
import { LargeAnswers, type PassedOn } from '../answers/large-answers.js';
import { ConfigureRoute } from '../http/route-config.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Instances')
@Controller('instance')
export class InstancesController {
  constructor(private readonly answers: LargeAnswers) {}

  @Get()
  @ConfigureRoute({ deadlineMs: 20_000 })
  @AnswersAllOrPage(
    InstanceList,
    'List instances',
    'Returns the instances of a team, or of all teams of the caller, pods included: those that have not ended or, with ' +
      '`include_ended`, all; in one response unless `limit` is sent. Any member of a team may read them. ' +
      'A platform_admin who names no team is answered a page of all there are.',
  )
  listInstances(
    @Query() query: ListInstances,
    @Context() context: CallContext,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<InstanceList | PassedOn> {
    const isOfAllTeams = query.team_id === undefined && isPlatformAdmin(context.caller);
    return isOfAllTeams
      ? this.answers.page(instances.list, query, context, reply)
      : this.answers.allOrPage(instances.list, query, context);
  }
}
