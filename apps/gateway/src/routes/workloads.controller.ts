import { Body, Controller, Delete, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import { ListWorkloads, StartWorkload, Workload, WorkloadPage, WorkloadPath, workloads } from '@atoll/contracts/gpuaas';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage, Refuses } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Workloads')
@Controller('gpuaas/workload')
export class WorkloadsController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @Answers(
    202,
    Workload,
    'Start a workload',
    'Starts a workload on a subscription. It is `pending` while a GPU that it needs changes its sharing mode. Requires team_owner, team_admin or member.',
  )
  @Refuses('insufficient_capacity')
  startWorkload(@Body() body: StartWorkload, @Context() context: CallContext): Promise<Workload> {
    return this.rpc.call(workloads.start, body, context);
  }

  @Get()
  @AnswersPage(
    WorkloadPage,
    1,
    'List the workloads of a team',
    'Returns workloads, of one subscription or of all. Any member of the team may read them.',
  )
  listWorkloads(@Query() query: ListWorkloads, @Context() context: CallContext): Promise<WorkloadPage> {
    return this.rpc.call(workloads.list, query, context);
  }

  @Delete(':workload_id')
  @Answers(
    202,
    Workload,
    'Stop a workload',
    'Stops a workload. A second request changes nothing. Requires team_owner, team_admin or member.',
  )
  stopWorkload(@Param() path: WorkloadPath, @Context() context: CallContext): Promise<Workload> {
    return this.rpc.call(workloads.stop, path, context);
  }
}
