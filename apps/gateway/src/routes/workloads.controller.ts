import { Body, Controller, Delete, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ListWorkloads, StartWorkload, Workload, WorkloadPage, WorkloadPath, workloads, type CallContext } from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage, Refuses } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Workloads')
@Controller('gpuaas/workload')
export class WorkloadsController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @Answers(202, Workload, 'Starts a workload on a subscription. It is `pending` while a GPU it needs is switching.')
  @Refuses('insufficient_capacity')
  start(@Body() body: StartWorkload, @Context() context: CallContext): Promise<Workload> {
    return this.rpc.call(workloads.start, body, context);
  }

  @Get()
  @AnswersPage(WorkloadPage, 1, 'Lists the workloads of a team.')
  list(@Query() query: ListWorkloads, @Context() context: CallContext): Promise<WorkloadPage> {
    return this.rpc.call(workloads.list, query, context);
  }

  @Delete(':workload_id')
  @Answers(202, Workload, 'Stops a workload. Repeated it changes nothing.')
  stop(@Param() path: WorkloadPath, @Context() context: CallContext): Promise<Workload> {
    return this.rpc.call(workloads.stop, path, context);
  }
}
