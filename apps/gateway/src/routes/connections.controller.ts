import { Controller, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import {
  CompatibleInstances,
  ConnectionList,
  ReadConnections,
  RefreshBegun,
  RefreshConnections,
  TeamPath,
  connections,
  type CallContext,
} from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersAllOrPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Connections')
@Controller('gpuaas')
export class ConnectionsController {
  constructor(private readonly rpc: Rpc) {}

  @Get('connection-info')
  @AnswersAllOrPage(
    ConnectionList,
    'How what runs on a team’s subscriptions is reached, as last refreshed; all of it unless `limit` is sent.',
  )
  read(@Query() query: ReadConnections, @Context() context: CallContext): Promise<ConnectionList> {
    return this.rpc.call(connections.read, query, context);
  }

  @Post('refresh-connections')
  @Answers(202, RefreshBegun, 'Refreshes connection information. Refreshes asked for at once are one.')
  refresh(@Query() query: RefreshConnections, @Context() context: CallContext): Promise<RefreshBegun> {
    return this.rpc.call(connections.refresh, query, context);
  }

  @Get('compatible-instances/:team_id')
  @Answers(200, CompatibleInstances, 'Lists the VMs and bare-metal instances of a team that may attach to its GPU services.')
  compatibleInstances(@Param() path: TeamPath, @Context() context: CallContext): Promise<CompatibleInstances> {
    return this.rpc.call(connections.compatibleInstances, path, context);
  }
}
