import { Body, Controller, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import { GpuNode, ListNodes, NodePage, NodePath, RegisterNode, nodes } from '@atoll/contracts/gpuaas';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('GPU inventory')
@Controller('gpuaas/node')
export class GpuNodesController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @Answers(
    201,
    GpuNode,
    'Register a node',
    'Registers a node with its GPUs. Initialise it before a pool uses them. Requires platform_admin.',
  )
  registerNode(@Body() body: RegisterNode, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.register, body, context);
  }

  @Get()
  @AnswersPage(
    NodePage,
    1,
    'List nodes',
    'Returns nodes with their GPUs, of one GPU service or of all. Requires platform_admin.',
  )
  listNodes(@Query() query: ListNodes, @Context() context: CallContext): Promise<NodePage> {
    return this.rpc.call(nodes.list, query, context);
  }

  @Get(':node_id')
  @Answers(
    200,
    GpuNode,
    'Get a node',
    'Returns a node with its GPUs, and the subscriptions and workloads that hold parts of each. Requires platform_admin.',
  )
  getNode(@Param() path: NodePath, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.get, path, context);
  }

  @Post(':node_id/initialise')
  @Answers(
    202,
    GpuNode,
    'Initialise a node',
    'Prepares a registered node, or tries again after `init_failed`. Requires platform_admin.',
  )
  initialiseNode(@Param() path: NodePath, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.initialise, path, context);
  }

  @Post(':node_id/reset')
  @Answers(
    202,
    GpuNode,
    'Reset a node',
    'Prepares a node from nothing. No part of it may be held. Requires platform_admin.',
  )
  resetNode(@Param() path: NodePath, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.reset, path, context);
  }

  @Post(':node_id/cordon')
  @Answers(
    200,
    GpuNode,
    'Cordon a node',
    'Places nothing new on the node; what runs there continues. Requires platform_admin.',
  )
  cordonNode(@Param() path: NodePath, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.cordon, path, context);
  }

  @Post(':node_id/uncordon')
  @Answers(200, GpuNode, 'Uncordon a node', 'Returns a cordoned node to the state before. Requires platform_admin.')
  uncordonNode(@Param() path: NodePath, @Context() context: CallContext): Promise<GpuNode> {
    return this.rpc.call(nodes.uncordon, path, context);
  }
}
