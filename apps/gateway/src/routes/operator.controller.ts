import { Controller, Delete, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, type CallContext } from '@atoll/contracts';
import {
  deadLetters,
  DeadLetterPage,
  DeadLetterPath,
  FailedEvent,
  ListDeadLetters,
  ListProcessesQuery,
  MachinePath,
  machines,
  machineServices,
  MachineStates,
  ProcessPage,
} from '@atoll/contracts/operator';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { askEach } from '../composition/ask-each.js';
import { listDeadLetters } from '../composition/dead-letters.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Operation')
@Controller('operator')
export class OperatorController {
  constructor(private readonly rpc: Rpc) {}

  @Get('machines')
  @Answers(
    200,
    MachineStates,
    'List the states in which processes wait or have failed',
    'Counts the processes of all services by state and age. A service that does not answer within 2 s is named, and its states are ' +
      'left out. Failed processes that have ended are counted for 7 days. Requires platform_admin.',
  )
  async listMachineStates(@Context() context: CallContext): Promise<MachineStates> {
    const ask = (service: (typeof machineServices)[number], hasty: CallContext) =>
      this.rpc.call(machines(service).states, new Nothing(), hasty);
    const { answers, services } = await askEach(machineServices, context, ask);
    return { data: answers.flatMap(({ data }) => data), services };
  }

  @Get('machines/:service/:machine')
  @AnswersPage(
    ProcessPage,
    1,
    'List the processes of a state machine',
    'Returns processes that wait or have failed, of one state or of all. At most 10,000 can be listed. Requires platform_admin.',
  )
  listMachineProcesses(
    @Param() path: MachinePath,
    @Query() query: ListProcessesQuery,
    @Context() context: CallContext,
  ): Promise<ProcessPage> {
    return this.rpc.call(machines(path.service).list, { ...path, ...query }, context);
  }

  @Get('dead-letters')
  @Answers(
    200,
    DeadLetterPage,
    'List dead letters',
    'Returns the events that could not be handled, of one service or of all. A service that does not answer within 2 s is named, and ' +
      'its dead letters are left out. Requires platform_admin.',
  )
  listDeadLetters(@Query() query: ListDeadLetters, @Context() context: CallContext): Promise<DeadLetterPage> {
    return listDeadLetters(this.rpc, query, context);
  }

  @Post('dead-letters/:service/:dead_letter_id/replay')
  @Answers(
    202,
    FailedEvent,
    'Replay a dead letter',
    'Requests another try of the event, which runs within seconds. If it succeeds, the dead letter disappears from the list; ' +
      'if it fails, `tries` and `error` of the dead letter are updated. Requires platform_admin.',
  )
  replayDeadLetter(@Param() path: DeadLetterPath, @Context() context: CallContext): Promise<FailedEvent> {
    return this.rpc.call(deadLetters(path.service).replay, path, context);
  }

  @Delete('dead-letters/:service/:dead_letter_id')
  @Answers(
    204,
    Nothing,
    'Drop a dead letter',
    'Deletes a dead letter permanently: the consumer never handles its event. Requires platform_admin.',
  )
  dropDeadLetter(@Param() path: DeadLetterPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(deadLetters(path.service).drop, path, context);
  }
}
