import { type CallContext, type PageFromOne } from '@atoll/contracts';
import {
  regions,
  type CreateGpuaas,
  type CreateRegion,
  type Gpuaas,
  type GpuaasPage,
  type Region,
  type RegionPage,
} from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { RegionsService } from './region.service.js';

@Controller()
export class RegionsController implements Handlers<typeof regions> {
  constructor(private readonly regions: RegionsService) {}

  @Handle(regions.create)
  create(input: CreateRegion, context: CallContext): Promise<Region> {
    return this.regions.create(input, context);
  }

  @Handle(regions.list)
  list(input: PageFromOne, context: CallContext): Promise<RegionPage> {
    return this.regions.list(input, context);
  }

  @Handle(regions.createGpuaas)
  createGpuaas(input: CreateGpuaas, context: CallContext): Promise<Gpuaas> {
    return this.regions.createGpuaas(input, context);
  }

  @Handle(regions.listGpuaas)
  listGpuaas(input: PageFromOne, context: CallContext): Promise<GpuaasPage> {
    return this.regions.listGpuaas(input, context);
  }
}
