import { IntersectionType } from '@nestjs/swagger';
import { DecimalText, NumberedId, TeamPath, WholeNumber } from '@atoll/contracts';
import type { ExactNumber } from '../http/exact.js';
import { ShownInteger, ShownNumber, ShownObject, ShownText } from '../http/old-answers.js';

export class OldRegion {
  @ShownInteger('Id of the region.')
  id!: number;

  @ShownText('Name of the region.')
  region_name!: string;

  @ShownText('City of the region.')
  city!: string;

  @ShownText('Country of the region.')
  country!: string;

  @ShownInteger('Id of the GPU service.')
  gpuaas_id!: number;
}

export class OldPool {
  @ShownInteger('Id of the pool.')
  id!: number;

  @ShownText('Name of the pool.')
  pool_name!: string;

  @ShownText('Board of the pool.', { example: 'A100-80GB' })
  gpu_model_type!: string;

  @ShownInteger('Number of vGPUs of the smallest profile that one subscription can get now.')
  available_vgpus!: number;

  @ShownText('Price of a vGPU of the smallest profile per hour, as decimal text; null where there is none.', {
    nullable: true,
    example: '1.25',
  })
  pricing_hourly!: string | null;
}

export class OldPoolPlace {
  @ShownInteger('Id of the pool.')
  pool_id!: number;

  @ShownText('Name of the pool.')
  pool_name!: string;

  @ShownInteger('Id of the GPU service.')
  gpuaas_id!: number;

  @ShownInteger('Id of the GPU service once more.')
  cluster_id!: number;

  @ShownInteger('Id of the region.')
  region_id!: number;

  @ShownText('Name of the region.')
  region_name!: string;

  @ShownText('City of the region.')
  city!: string;

  @ShownText('Country of the region (ISO 3166-1 alpha-2); empty where it is not known.')
  country_code!: string;
}

class OfGpuaas {
  @NumberedId({ optional: true, example: '1', description: 'Id of the GPU service.' })
  gpuaas_id?: string;
}

export class OldPoolsQuery extends IntersectionType(TeamPath, OfGpuaas) {}

export class PoolQuestion extends TeamPath {
  @NumberedId({ example: '1', description: 'Id of the pool.' })
  pool_id!: string;

  @WholeNumber({ min: 1, max: 10_000, description: 'Number of vGPUs.', example: 2 })
  vgpus!: number;

  @DecimalText({ max: 1_000_000, orNumber: true, description: 'Hours, rounded to 9 decimals.', example: 24 })
  duration_hours!: string;
}

class CostBreakdown {
  @ShownNumber('Cost of the vGPUs.')
  gpu_cost!: ExactNumber;

  @ShownNumber('Cost of storage: none.')
  storage_cost!: ExactNumber;
}

export class PoolEstimate {
  @ShownNumber('Cost for these hours, rounded half up at 9 decimals.')
  total_cost!: ExactNumber;

  @ShownNumber('Cost of one hour.')
  hourly_cost!: ExactNumber;

  @ShownText('Currency (ISO 4217).', { example: 'USD' })
  currency!: string;

  @ShownObject(() => CostBreakdown, 'Cost by kind.')
  breakdown!: CostBreakdown;
}
