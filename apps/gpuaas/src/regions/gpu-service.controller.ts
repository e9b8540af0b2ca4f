import { notFound, requireService, type CallContext } from '@atoll/contracts';
import { gpuServices, type FindGpuService, type GpuServiceOfRegion } from '@atoll/contracts/gpuaas';
import { Statements } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';

/** Answers other services where something of a region is placed. */
@Controller()
export class GpuServicesController implements Handlers<typeof gpuServices> {
  constructor(private readonly statements: Statements) {}

  @Handle(gpuServices.find)
  async find({ region_id, gpuaas_id }: FindGpuService, { caller }: CallContext): Promise<GpuServiceOfRegion> {
    requireService(caller);
    const [found] = await this.statements.query<{ region_name: string; gpuaas_id: string | null }>(
      `SELECT region_name, gpuaas_id FROM region LEFT JOIN gpuaas ON gpuaas.region_id = region.region_id AND ($2::bigint IS NULL OR gpuaas_id = $2)
       WHERE region.region_id = $1 ORDER BY gpuaas_id LIMIT 1`,
      [region_id, gpuaas_id ?? null],
    );
    if (!found) throw notFound('region');
    if (found.gpuaas_id !== null) return { gpuaas_id: found.gpuaas_id, region_id, region_name: found.region_name };
    if (gpuaas_id !== undefined) throw notFound('GPU service in this region');
    throw new AppError('not_supported', 'The region has no GPU service yet: nothing can be created there.');
  }
}
