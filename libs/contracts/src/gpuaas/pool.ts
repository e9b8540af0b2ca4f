import { ApiProperty, ApiPropertyOptional, IntersectionType, OmitType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { DecimalText, Flag, Instant, ListOf, OneOf, OneOfInAnyCase, Text, WholeNumber } from '../fields.js';
import { Names, NumberedId, NumberedIds, Uuid } from '../id-fields.js';
import { PageFromOne, PageOf } from '../page.js';
import { Region } from './region.js';

const sharingModes = ['Spatial', 'Temporal'] as const;
const mechanisms = ['mig', 'mps', 'time_slicing'] as const;
const isolations = ['hardware', 'software', 'none'] as const;

class PoolTerms {
  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @Text({ max: 100, example: 'a100-mig', description: 'Unique in its gpuaas.' })
  pool_name!: string;

  @NumberedIds({
    max: 4_000,
    example: ['1', '2'],
    description: 'Ids of the GPUs, all of one board; a GPU is in one pool at most.',
  })
  gpu_ids!: string[];

  @OneOf('SharingMechanism', mechanisms, {
    example: 'mig',
    description: 'Mechanism of the sharing: mig or mps for Spatial, time_slicing for Temporal.',
  })
  mechanism!: (typeof mechanisms)[number];
}

export class CreatePool extends PoolTerms {
  @OneOfInAnyCase(sharingModes, {
    example: 'Spatial',
    description: 'Sharing mode of the GPUs: Spatial or Temporal; upper and lower case are accepted.',
  })
  sharing_mode!: (typeof sharingModes)[number];

  @Names({
    max: 6,
    optional: true,
    example: ['1g.10gb', '3g.40gb'],
    description: 'MIG profiles that the pool sells, 1 to 6; with mig only.',
  })
  profiles?: string[];

  @WholeNumber({
    min: 2,
    max: 48,
    optional: true,
    example: 4,
    description: 'Parts of each GPU, 2 to 48; with mps and time_slicing only.',
  })
  replicas?: number;

  @ApiPropertyOptional({ default: 1 })
  @WholeNumber({
    min: 1,
    max: 16,
    optional: true,
    example: 1,
    description: 'Number of times that each slice is sold, 1 to 16.',
  })
  overcommit?: number;

  @ApiPropertyOptional({ default: false })
  @Flag({
    optional: true,
    description: 'Whether a GPU may fall back to Temporal when no slice is left; for Spatial pools only.',
  })
  allow_fallback?: boolean;

  @WholeNumber({
    min: 2,
    max: 48,
    optional: true,
    example: 12,
    description: 'Turns of a GPU that fell back, 2 to 48, more than it has slices; twice as many if left out.',
  })
  temporal_replicas?: number;
}

export class Pool extends PoolTerms {
  @OneOf('SharingMode', sharingModes, { example: 'Spatial' })
  sharing_mode!: (typeof sharingModes)[number];

  @NumberedId({ example: '1' })
  pool_id!: string;

  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({ max: 64, example: 'A100-80GB' })
  board!: string;

  @Names({
    max: 6,
    example: ['1g.10gb', '3g.40gb'],
    description: 'Profiles that the pool sells: of MIG, `mps-<n>` or `ts-<n>`.',
  })
  profiles!: string[];

  @WholeNumber({ min: 2, max: 48, nullable: true })
  replicas!: number | null;

  @WholeNumber({ min: 1, max: 16, example: 1 })
  overcommit!: number;

  @Flag()
  allow_fallback!: boolean;

  @WholeNumber({ min: 2, max: 48, nullable: true })
  temporal_replicas!: number | null;

  @Instant()
  created_at!: string;
}

export class ListPools extends PageFromOne {
  @NumberedId({ optional: true, example: '1' })
  gpuaas_id?: string;
}

export class PoolPage extends PageOf(() => Pool) {}

export class OfferedProfile {
  @Text({ max: 64, example: '1g.10gb' })
  profile!: string;

  @ApiProperty({
    type: Number,
    example: 10,
    description: 'Memory of each vGPU in GB; nominal where the isolation is none.',
  })
  v_ram_gb!: number;

  @ApiProperty({
    type: 'integer',
    example: 7,
    description:
      'Number of vGPUs that one subscription of this profile can get now; more may fit where a GPU falls back.',
  })
  available_vgpus!: number;

  @DecimalText({
    max: 1_000_000_000,
    nullable: true,
    example: '1.25',
    description: 'Price per vGPU and hour for this team; null where there is none.',
  })
  unit_price!: string | null;

  @Text({ max: 3, nullable: true, example: 'USD', description: 'Currency (ISO 4217) of the price; null without one.' })
  currency!: string | null;
}

export class AvailablePool extends OmitType(Pool, [
  'gpu_ids',
  'mechanism',
  'profiles',
  'replicas',
  'overcommit',
  'allow_fallback',
  'temporal_replicas',
  'created_at',
] as const) {
  @OneOf('Isolation', isolations, { example: 'hardware' })
  isolation!: (typeof isolations)[number];

  @ListOf(() => OfferedProfile, { max: 6 })
  profiles!: OfferedProfile[];
}

export class AvailablePoolPage extends PageOf(() => AvailablePool) {}

export class AvailableRegionsQuery extends PageFromOne {
  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' })
  team_id!: string;
}

/** A region in which something can be subscribed, with its GPU services. */
class AvailableRegion extends OmitType(Region, ['created_at'] as const) {
  @Names({ max: 1000, example: ['1'], description: 'Ids of the GPU services of the region.' })
  gpuaas_ids!: string[];
}

export class AvailableRegionPage extends PageOf(() => AvailableRegion) {}

class OfGpuaas {
  @NumberedId({ optional: true, example: '1' })
  gpuaas_id?: string;
}

export class AvailablePoolsQuery extends IntersectionType(AvailableRegionsQuery, OfGpuaas) {}

/** One pool, or all that match. */
export class FindAvailablePools extends AvailablePoolsQuery {
  @NumberedId({ optional: true, example: '1' })
  pool_id?: string;
}

export const pools = contract('gpuaas.pools', {
  create: operation(CreatePool, Pool),
  list: operation(ListPools, PoolPage),
  availableRegions: operation(AvailableRegionsQuery, AvailableRegionPage),
  available: operation(FindAvailablePools, AvailablePoolPage),
});
