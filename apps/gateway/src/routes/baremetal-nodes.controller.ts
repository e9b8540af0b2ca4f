import { Body, Controller, Delete, Get, Param, Post, Put, Query, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, type CallContext } from '@atoll/contracts';
import {
  BaremetalNode,
  BaremetalNodePage,
  BaremetalNodePath,
  ListBaremetalNodes,
  RegisterBaremetalNode,
  ReinstallCallback,
  UpdateBaremetalNodeBody,
  baremetalNodes,
} from '@atoll/contracts/gpuaas';
import { Rpc, systemContext } from '@atoll/rpc';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Answers, AnswersPage, KeepsNoAnswer } from '../answers/answers.js';
import { Public } from '../authentication/public.js';
import { RateLimits } from '../rate-limits/rate-limits.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Bare-metal inventory')
@Controller('baremetal')
export class BaremetalNodesController {
  constructor(
    private readonly rpc: Rpc,
    private readonly limits: RateLimits,
  ) {}

  @Post('node')
  @Answers(
    202,
    BaremetalNode,
    'Register a bare-metal node',
    'Registers a host and begins to check it. It is `Available` once it was reached, its host key pinned, and its specs found as declared. Requires platform_admin.',
  )
  registerBaremetalNode(@Body() body: RegisterBaremetalNode, @Context() context: CallContext): Promise<BaremetalNode> {
    return this.rpc.call(baremetalNodes.register, body, context);
  }

  @Get('node')
  @AnswersPage(
    BaremetalNodePage,
    1,
    'List bare-metal nodes',
    'Returns the nodes of one region or of all. Requires platform_admin.',
  )
  listBaremetalNodes(@Query() query: ListBaremetalNodes, @Context() context: CallContext): Promise<BaremetalNodePage> {
    return this.rpc.call(baremetalNodes.list, query, context);
  }

  @Get('node/:node_id')
  @Answers(
    200,
    BaremetalNode,
    'Get a bare-metal node',
    'Returns a node with its findings and its last attempts. Requires platform_admin.',
  )
  getBaremetalNode(@Param() path: BaremetalNodePath, @Context() context: CallContext): Promise<BaremetalNode> {
    return this.rpc.call(baremetalNodes.get, path, context);
  }

  @Put('node/:node_id')
  @Answers(
    200,
    BaremetalNode,
    'Update a bare-metal node',
    'Changes how the host is logged in to, whether it takes new tenants, and what becomes of it after them. Requires platform_admin.',
  )
  updateBaremetalNode(
    @Param() path: BaremetalNodePath,
    @Body() body: UpdateBaremetalNodeBody,
    @Context() context: CallContext,
  ): Promise<BaremetalNode> {
    return this.rpc.call(baremetalNodes.update, { ...path, ...body }, context);
  }

  @Post('node/:node_id/check')
  @Answers(
    202,
    BaremetalNode,
    'Check a bare-metal node',
    'Begins to check a host again; one that could not be cleaned is cleaned at once instead. It must be free. Requires platform_admin.',
  )
  checkBaremetalNode(@Param() path: BaremetalNodePath, @Context() context: CallContext): Promise<BaremetalNode> {
    return this.rpc.call(baremetalNodes.check, path, context);
  }

  @Post('node/:node_id/accept')
  @Answers(
    200,
    BaremetalNode,
    'Accept the specs of a bare-metal node',
    'Offers a host although its last check found other specs than declared. Requires platform_admin.',
  )
  acceptBaremetalNode(@Param() path: BaremetalNodePath, @Context() context: CallContext): Promise<BaremetalNode> {
    return this.rpc.call(baremetalNodes.accept, path, context);
  }

  @Delete('node/:node_id')
  @Answers(
    204,
    Nothing,
    'Delete a bare-metal node',
    'Removes a host from the inventory. It must not be in use. Requires platform_admin.',
  )
  deleteBaremetalNode(@Param() path: BaremetalNodePath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(baremetalNodes.delete, path, context);
  }

  @Post('reinstall-callback')
  @KeepsNoAnswer()
  @Public()
  @Answers(
    204,
    Nothing,
    'Answer a reinstall call',
    'Says what became of a reinstall that the platform had asked a hook for. Takes no API key: the token of the call is its credential, good once. Counts as a request without credentials.',
  )
  async answerReinstall(
    @Body() body: ReinstallCallback,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Nothing> {
    await this.limits.anonymous(request.address, reply);
    return this.rpc.call(baremetalNodes.reinstalled, body, systemContext('gateway', { requestId: request.id }));
  }
}
