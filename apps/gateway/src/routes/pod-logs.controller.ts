import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import { PodLogPage, podLogs, ReadPodLogs } from '@atoll/contracts/pods';
import { AnswersJson } from '../answers/answers.js';
import { LargeAnswers, type PassedOn } from '../answers/large-answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Pods')
@Controller('logs/pods')
export class PodLogsController {
  constructor(private readonly answers: LargeAnswers) {}

  @Get()
  @AnswersJson(
    PodLogPage,
    'Read the logs of pods',
    'Returns lines that pods have written, newest first unless asked otherwise, of one pod or of all pods of the caller’s teams. A platform_admin names `team_id` or `pod_name`. ' +
      'Lines are kept after their pod is gone. Requires team_owner, team_admin or member.',
  )
  readPodLogs(@Query() query: ReadPodLogs, @Context() context: CallContext): Promise<PassedOn> {
    return this.answers.passOn(podLogs.read, query, context);
  }
}
