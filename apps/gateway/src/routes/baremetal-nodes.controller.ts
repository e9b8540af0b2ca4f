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
    'Registers a host and starts to check it. It becomes `Available` once it is reachable, its host key is pinned and its specs match. Requires platform_admin.',
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
    'Changes the credential or the host key of the host, whether it accepts new tenants, and how it is cleaned after them. Requires platform_admin.',
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
    'Starts a new check of a host. If its last cleaning failed, starts to clean it instead. The host must be free, and reinstalled after a tenant with sudo: set its `host_key` first. Requires platform_admin.',
  )
  checkBaremetalNode(@Param() path: BaremetalNodePath, @Context() context: CallContext): Promise<BaremetalNode> {
    return this.rpc.call(baremetalNodes.check, path, context);
  }

  @Post('node/:node_id/accept')
  @Answers(
    200,
    BaremetalNode,
    'Accept the specs of a bare-metal node',
    'Makes a host available although its last check found specs that differ from the declared ones. Requires platform_admin.',
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
    'Reports the result of a reinstall that the platform requested through a hook. Needs no API key: the single-use token is the credential. Rate limits count it as a request without credentials.',
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
