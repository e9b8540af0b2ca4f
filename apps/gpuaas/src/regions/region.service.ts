import { pageWindow, requirePlatformAdmin, type CallContext, type PageFromOne } from '@atoll/contracts';
import {
  regionAdded,
  type CreateGpuaas,
  type CreateRegion,
  type Gpuaas,
  type GpuaasPage,
  type Region,
  type RegionPage,
} from '@atoll/contracts/gpuaas';
import { Transactions, unique } from '@atoll/database';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ClusterRows } from '../clusters/cluster-rows.js';
import { GpuaasEntity, RegionEntity } from '../model/region.entity.js';
import { requireRegion } from '../model/known-region.js';

/** Regions, and the GPU service of each. */
@Injectable()
export class RegionsService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly outbox: Outbox,
    private readonly clusters: ClusterRows,
  ) {}

  async create({ region_name, city, country }: CreateRegion, context: CallContext): Promise<Region> {
    requirePlatformAdmin(context.caller);
    return this.transactions.once(context, async (manager) => {
      const values = { regionName: region_name, city: city ?? null, country: country ?? null };
      const region = await unique(
        manager.save(manager.create(RegionEntity, values)),
        'A region with this name already exists.',
      );
      await this.outbox.add(manager, regionAdded, { region_id: region.regionId, region_name }, context);
      return regionView(region);
    });
  }

  async list(asked: PageFromOne, { caller }: CallContext): Promise<RegionPage> {
    requirePlatformAdmin(caller);
    const { page, limit, offset } = pageWindow(asked, 1);
    const [regions, total] = await this.dataSource.manager.findAndCount(RegionEntity, {
      order: { createdAt: 'ASC', regionId: 'ASC' },
      take: limit,
      skip: offset,
    });
    return { data: regions.map(regionView), pagination: { page, limit, total } };
  }

  async createGpuaas({ region_id, name }: CreateGpuaas, context: CallContext): Promise<Gpuaas> {
    requirePlatformAdmin(context.caller);
    return this.transactions.once(context, async (manager) => {
      await requireRegion(manager, region_id);
      const saving = manager.save(manager.create(GpuaasEntity, { regionId: region_id, name }));
      const gpuaas = await unique(saving, 'The region already has a GPU service with this name.');
      await this.clusters.create(manager, gpuaas.gpuaasId);
      return gpuaasView(gpuaas);
    });
  }

  async listGpuaas(asked: PageFromOne, { caller }: CallContext): Promise<GpuaasPage> {
    requirePlatformAdmin(caller);
    const { page, limit, offset } = pageWindow(asked, 1);
    const [found, total] = await this.dataSource.manager.findAndCount(GpuaasEntity, {
      order: { createdAt: 'ASC', gpuaasId: 'ASC' },
      take: limit,
      skip: offset,
    });
    return { data: found.map(gpuaasView), pagination: { page, limit, total } };
  }
}

function regionView({ regionId, regionName, city, country, createdAt }: RegionEntity): Region {
  return { region_id: regionId, region_name: regionName, city, country, created_at: createdAt.toISOString() };
}

function gpuaasView({ gpuaasId, regionId, name, createdAt }: GpuaasEntity): Gpuaas {
  return { gpuaas_id: gpuaasId, region_id: regionId, name, created_at: createdAt.toISOString() };
}
