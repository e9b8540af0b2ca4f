import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import { InstanceList, instances, ListInstances } from '@atoll/contracts/pods';
import { Rpc } from '@atoll/rpc';
import { AnswersAllOrPage } from '../answers/answers.js';
import { LargeAnswers, type PassedOn } from '../answers/large-answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Instances')
@Controller('instance')
export class InstancesController {
  constructor(
    private readonly rpc: Rpc,
    private readonly answers: LargeAnswers,
  ) {}

  @Get()
  @AnswersAllOrPage(
    InstanceList,
    'List instances',
    'Returns the instances of a team, or of all teams of the caller, pods included. Unless `limit` is sent, all that have not ended; with ' +
      '`include_ended` also the newest 1,000 that have. Any member of the team may read them. A platform_admin who names no team is answered ' +
      'a page of all there are.',
  )
  listInstances(@Query() query: ListInstances, @Context() context: CallContext): Promise<InstanceList | PassedOn> {
    return this.answers.allOrPage(this.rpc, instances.list, query, context);
  }
}
