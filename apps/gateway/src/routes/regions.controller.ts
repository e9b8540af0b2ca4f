import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import {
  CreateGpuaas,
  CreateRegion,
  Gpuaas,
  GpuaasPage,
  PageFromOne,
  Region,
  RegionPage,
  regions,
  type CallContext,
} from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('GPU inventory')
@Controller()
export class RegionsController {
  constructor(private readonly rpc: Rpc) {}

  @Post('region')
  @Answers(201, Region, 'Creates a region. For a platform_admin.')
  create(@Body() body: CreateRegion, @Context() context: CallContext): Promise<Region> {
    return this.rpc.call(regions.create, body, context);
  }

  @Get('region')
  @AnswersPage(RegionPage, 1, 'Lists regions. For a platform_admin; others see those that have something for them under available-regions.')
  list(@Query() page: PageFromOne, @Context() context: CallContext): Promise<RegionPage> {
    return this.rpc.call(regions.list, page, context);
  }

  @Post('gpuaas')
  @Answers(201, Gpuaas, 'Creates the GPU service of a region: a cluster with nodes and pools. For a platform_admin.')
  createGpuaas(@Body() body: CreateGpuaas, @Context() context: CallContext): Promise<Gpuaas> {
    return this.rpc.call(regions.createGpuaas, body, context);
  }

  @Get('gpuaas')
  @AnswersPage(GpuaasPage, 1, 'Lists GPU services. For a platform_admin.')
  listGpuaas(@Query() page: PageFromOne, @Context() context: CallContext): Promise<GpuaasPage> {
    return this.rpc.call(regions.listGpuaas, page, context);
  }
}
