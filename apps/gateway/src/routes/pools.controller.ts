import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import {
  AvailablePoolPage,
  AvailablePoolsQuery,
  AvailableRegionPage,
  AvailableRegionsQuery,
  CreatePool,
  ListPools,
  Pool,
  PoolPage,
  pools,
  type CallContext,
} from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('GPU pools')
@Controller('gpuaas')
export class PoolsController {
  constructor(private readonly rpc: Rpc) {}

  @Post('pool/create')
  @Answers(201, Pool, 'Makes a pool of GPUs of one board. For a platform_admin.')
  create(@Body() body: CreatePool, @Context() context: CallContext): Promise<Pool> {
    return this.rpc.call(pools.create, body, context);
  }

  @Get('all-pools')
  @AnswersPage(PoolPage, 1, 'Lists all pools. For a platform_admin.')
  list(@Query() query: ListPools, @Context() context: CallContext): Promise<PoolPage> {
    return this.rpc.call(pools.list, query, context);
  }

  @Get('available-regions')
  @AnswersPage(AvailableRegionPage, 1, 'Lists the regions that have pools.')
  availableRegions(@Query() query: AvailableRegionsQuery, @Context() context: CallContext): Promise<AvailableRegionPage> {
    return this.rpc.call(pools.availableRegions, query, context);
  }

  @Get('available-pools')
  @AnswersPage(AvailablePoolPage, 1, 'Lists pools with what a team could have of them now, and what that costs it.')
  available(@Query() query: AvailablePoolsQuery, @Context() context: CallContext): Promise<AvailablePoolPage> {
    return this.rpc.call(pools.available, query, context);
  }
}
