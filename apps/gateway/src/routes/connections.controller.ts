import { Controller, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { PageFromOneOrAll, TeamPath, type CallContext } from '@atoll/contracts';
import {
  CompatibleInstances,
  ConnectionList,
  ReadConnections,
  RefreshBegun,
  RefreshConnections,
  connections,
} from '@atoll/contracts/gpuaas';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersAllOrPage } from '../answers/answers.js';
import { LargeAnswers, type PassedOn } from '../answers/large-answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Connections')
@Controller('gpuaas')
export class ConnectionsController {
  constructor(
    private readonly rpc: Rpc,
    private readonly answers: LargeAnswers,
  ) {}

  @Get('connection-info')
  @AnswersAllOrPage(
    ConnectionList,
    'List the connections of a team',
    'Returns the addresses of the pods and services on the subscriptions, as last refreshed: all of them unless `limit` is sent. Requires team_owner, team_admin or member.',
  )
  listConnections(
    @Query() query: ReadConnections,
    @Context() context: CallContext,
  ): Promise<ConnectionList | PassedOn> {
    return this.answers.allOrPage(connections.read, query, context);
  }

  @Post('refresh-connections')
  @Answers(
    202,
    RefreshBegun,
    'Refresh the connections of a team',
    'Refreshes the addresses. Concurrent requests share one refresh. A suspended team gets the last refreshed values. Requires ' +
      'team_owner, team_admin or member.',
  )
  refreshConnections(@Query() query: RefreshConnections, @Context() context: CallContext): Promise<RefreshBegun> {
    return this.rpc.call(connections.refresh, query, context);
  }

  @Get('compatible-instances/:team_id')
  @AnswersAllOrPage(
    CompatibleInstances,
    'List the instances that may attach to a GPU service',
    'Returns the VMs that run and the bare-metal instances that are active, all of them unless `limit` is sent; pods do not qualify.',
  )
  listCompatibleInstances(
    @Param() path: TeamPath,
    @Query() page: PageFromOneOrAll,
    @Context() context: CallContext,
  ): Promise<CompatibleInstances | PassedOn> {
    return this.answers.allOrPage(connections.compatibleInstances, { ...path, ...page }, context);
  }
}
