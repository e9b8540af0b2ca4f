import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { PageFromOne, type CallContext } from '@atoll/contracts';
import { CreateGpuaas, CreateRegion, Gpuaas, GpuaasPage, Region, RegionPage, regions } from '@atoll/contracts/gpuaas';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('GPU inventory')
@Controller()
export class RegionsController {
  constructor(private readonly rpc: Rpc) {}

  @Post('region')
  @Answers(201, Region, 'Create a region', 'Creates a region that has no GPU service yet. Requires platform_admin.')
  createRegion(@Body() body: CreateRegion, @Context() context: CallContext): Promise<Region> {
    return this.rpc.call(regions.create, body, context);
  }

  @Get('region')
  @AnswersPage(
    RegionPage,
    1,
    'List regions',
    'Returns all regions. Requires platform_admin; others list the regions that offer pools to them (listAvailableRegions).',
  )
  listRegions(@Query() page: PageFromOne, @Context() context: CallContext): Promise<RegionPage> {
    return this.rpc.call(regions.list, page, context);
  }

  @Post('gpuaas')
  @Answers(
    201,
    Gpuaas,
    'Create a GPU service',
    'Creates the GPU service (gpuaas) of a region: a cluster with nodes and pools. Requires platform_admin.',
  )
  createGpuService(@Body() body: CreateGpuaas, @Context() context: CallContext): Promise<Gpuaas> {
    return this.rpc.call(regions.createGpuaas, body, context);
  }

  @Get('gpuaas')
  @AnswersPage(
    GpuaasPage,
    1,
    'List GPU services',
    'Returns the GPU services (gpuaas) of all regions. Requires platform_admin.',
  )
  listGpuServices(@Query() page: PageFromOne, @Context() context: CallContext): Promise<GpuaasPage> {
    return this.rpc.call(regions.listGpuaas, page, context);
  }
}
