import { type CallContext } from '@atoll/contracts';
import {
  pools,
  type AvailablePoolPage,
  type AvailableRegionPage,
  type AvailableRegionsQuery,
  type CreatePool,
  type FindAvailablePools,
  type ListPools,
  type Pool,
  type PoolPage,
} from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PoolsService } from './pool.service.js';

@Controller()
export class PoolsController implements Handlers<typeof pools> {
  constructor(private readonly pools: PoolsService) {}

  @Handle(pools.create)
  create(input: CreatePool, context: CallContext): Promise<Pool> {
    return this.pools.create(input, context);
  }

  @Handle(pools.list)
  list(input: ListPools, context: CallContext): Promise<PoolPage> {
    return this.pools.list(input, context);
  }

  @Handle(pools.availableRegions)
  availableRegions(input: AvailableRegionsQuery, context: CallContext): Promise<AvailableRegionPage> {
    return this.pools.availableRegions(input, context);
  }

  @Handle(pools.available)
  available(input: FindAvailablePools, context: CallContext): Promise<AvailablePoolPage> {
    return this.pools.available(input, context);
  }
}
