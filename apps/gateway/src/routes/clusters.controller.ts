import { Body, Controller, Get, Param, Post, Put } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import { Cluster, GpuaasPath, SetClusterBody, clusters } from '@atoll/contracts/gpuaas';
import { Rpc } from '@atoll/rpc';
import { Answers, KeepsNoAnswer, Refuses } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('GPU inventory')
@Controller('gpuaas/:gpuaas_id/cluster')
export class ClustersController {
  constructor(private readonly rpc: Rpc) {}

  @Put()
  @Answers(
    200,
    Cluster,
    'Set the cluster of a GPU service',
    'Sets the cluster that runs the pods of a GPU service, checks it, and returns the result of the check. The setting is stored even if the cluster does not respond. ' +
      'Another driver or engine is refused while pods run there. Requires platform_admin.',
  )
  @Refuses('not_supported')
  setCluster(
    @Param() path: GpuaasPath,
    @Body() body: SetClusterBody,
    @Context() context: CallContext,
  ): Promise<Cluster> {
    return this.rpc.call(clusters.set, { ...path, ...body }, context);
  }

  @Get()
  @Answers(
    200,
    Cluster,
    'Get the cluster of a GPU service',
    'Returns the cluster that runs the pods of a GPU service, and the result of its last check. Requires platform_admin.',
  )
  getCluster(@Param() path: GpuaasPath, @Context() context: CallContext): Promise<Cluster> {
    return this.rpc.call(clusters.get, path, context);
  }

  @Post('check')
  @KeepsNoAnswer()
  @Answers(
    200,
    Cluster,
    'Check the cluster of a GPU service',
    'Checks whether the cluster responds and has what pods need. The check of a cluster that hangs times out after 4 seconds. Requires platform_admin.',
  )
  checkCluster(@Param() path: GpuaasPath, @Context() context: CallContext): Promise<Cluster> {
    return this.rpc.call(clusters.check, path, context);
  }
}
