import { Body, Controller, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { GpuNode, ListNodes, NodePage, NodePath, RegisterNode, nodes, type CallContext } from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('GPU inventory')
@Controller('gpuaas/node')
export class GpuNodesController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @Answers(201, GpuNode, 'Registers a node with its GPUs. For a platform_admin.')
  register(@Body() body: RegisterNode, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.register, body, context);
  }

  @Get()
  @AnswersPage(NodePage, 1, 'Lists the nodes with their GPUs, of one GPU service or of all. For a platform_admin.')
  list(@Query() query: ListNodes, @Context() context: CallContext): Promise<NodePage> {
    return this.rpc.call(nodes.list, query, context);
  }

  @Get(':node_id')
  @Answers(200, GpuNode, 'Shows a node, its GPUs, and who holds what of each. For a platform_admin.')
  get(@Param() path: NodePath, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.get, path, context);
  }

  @Post(':node_id/initialise')
  @Answers(202, GpuNode, 'Makes a registered node ready, or tries again after `init_failed`. For a platform_admin.')
  initialise(@Param() path: NodePath, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.initialise, path, context);
  }

  @Post(':node_id/reset')
  @Answers(202, GpuNode, 'Sets up anew a node of which nothing is held. For a platform_admin.')
  reset(@Param() path: NodePath, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.reset, path, context);
  }

  @Post(':node_id/cordon')
  @Answers(200, GpuNode, 'Takes nothing new onto a node; what runs there goes on. For a platform_admin.')
  cordon(@Param() path: NodePath, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.cordon, path, context);
  }

  @Post(':node_id/uncordon')
  @Answers(200, GpuNode, 'Opens a cordoned node again. For a platform_admin.')
  uncordon(@Param() path: NodePath, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.uncordon, path, context);
  }
}
