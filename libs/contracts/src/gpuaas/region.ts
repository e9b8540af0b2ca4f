import { contract, operation } from '../contract.js';
import { Instant, Text } from '../fields.js';
import { NumberedId } from '../id-fields.js';
import { PageFromOne, PageOf } from '../page.js';

export class CreateRegion {
  @Text({ max: 100, example: 'eu-north', description: 'Name of the region, unique.' })
  region_name!: string;

  @Text({ max: 100, optional: true, example: 'Oslo' })
  city?: string;

  @Text({ max: 100, optional: true, example: 'Norway' })
  country?: string;
}

export class Region {
  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({ max: 100, example: 'eu-north' })
  region_name!: string;

  @Text({ max: 100, nullable: true, example: 'Oslo' })
  city!: string | null;

  @Text({ max: 100, nullable: true, example: 'Norway' })
  country!: string | null;

  @Instant()
  created_at!: string;
}

export class RegionPage extends PageOf(() => Region) {}

export class CreateGpuaas {
  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({ max: 100, example: 'oslo-a', description: 'Name of the GPU service, unique in its region.' })
  name!: string;
}

/** One region's GPU service: a cluster with nodes and pools. */
export class Gpuaas {
  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({ max: 100, example: 'oslo-a' })
  name!: string;

  @Instant()
  created_at!: string;
}

export class GpuaasPage extends PageOf(() => Gpuaas) {}

export const regions = contract('gpuaas.regions', {
  create: operation(CreateRegion, Region),
  list: operation(PageFromOne, RegionPage),
  createGpuaas: operation(CreateGpuaas, Gpuaas),
  listGpuaas: operation(PageFromOne, GpuaasPage),
});
