import { Body, Controller, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import {
  AvailablePoolPage,
  AvailablePoolsQuery,
  AvailableRegionPage,
  AvailableRegionsQuery,
  CreatePool,
  ListPools,
  Pool,
  PoolGpuPage,
  PoolGpuPath,
  poolGpus,
  PoolGpusQuery,
  PoolPage,
  pools,
} from '@atoll/contracts/gpuaas';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('GPU pools')
@Controller('gpuaas')
export class PoolsController {
  constructor(private readonly rpc: Rpc) {}

  @Post('pool/create')
  @Answers(201, Pool, 'Create a GPU pool', 'Creates a pool from GPUs of one board. Requires platform_admin.')
  createPool(@Body() body: CreatePool, @Context() context: CallContext): Promise<Pool> {
    return this.rpc.call(pools.create, body, context);
  }

  @Get('all-pools')
  @AnswersPage(
    PoolPage,
    1,
    'List GPU pools',
    'Returns the pools of one GPU service or of all. Requires platform_admin.',
  )
  listPools(@Query() query: ListPools, @Context() context: CallContext): Promise<PoolPage> {
    return this.rpc.call(pools.list, query, context);
  }

  @Get('available-regions')
  @AnswersPage(
    AvailableRegionPage,
    1,
    'List the regions that offer pools',
    'Returns the regions in which a team can subscribe to something. Any member of the team may read them.',
  )
  listAvailableRegions(
    @Query() query: AvailableRegionsQuery,
    @Context() context: CallContext,
  ): Promise<AvailableRegionPage> {
    return this.rpc.call(pools.availableRegions, query, context);
  }

  @Get('available-pools')
  @AnswersPage(
    AvailablePoolPage,
    1,
    'List the pools that a team can subscribe to',
    'Returns pools with the capacity and the price that the team would get now. Any member of the team may read them.',
  )
  listAvailablePools(@Query() query: AvailablePoolsQuery, @Context() context: CallContext): Promise<AvailablePoolPage> {
    return this.rpc.call(pools.available, query, context);
  }

  @Get('pool/:pool_id/gpus')
  @AnswersPage(
    PoolGpuPage,
    1,
    'List the GPUs of a pool',
    'Returns the GPUs and the slices that are held on them; holders are shown only for the team itself. Any member of the team may read them.',
  )
  listPoolGpus(
    @Param() path: PoolGpuPath,
    @Query() query: PoolGpusQuery,
    @Context() context: CallContext,
  ): Promise<PoolGpuPage> {
    return this.rpc.call(poolGpus.list, { ...path, ...query }, context);
  }
}
